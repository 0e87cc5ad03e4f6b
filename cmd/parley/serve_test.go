package main

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/parley-hub/parley/journal"
	"github.com/parley-hub/parley/journal/mem"
	"github.com/parley-hub/parley/server/config"
)

// failing is an engine that fails when it is told to, and then may hang.
type failing struct {
	*mem.Engine
	failed chan struct{}
	hang   chan struct{} // nil: it closes at once
}

func (f *failing) Failed() <-chan struct{} { return f.failed }

func (f *failing) Health() journal.Health {
	select {
	case <-f.failed:
		return journal.Health{State: journal.Broken, Err: errors.New("sync: input/output error")}
	default:
		return f.Engine.Health()
	}
}

func (f *failing) Close() error {
	if f.hang != nil {
		<-f.hang
	}
	return f.Engine.Close()
}

// A hub whose disk failed ends by itself soon, also if closing hangs.
func TestFailedJournalEndsTheHub(t *testing.T) {
	t.Parallel()
	for name, hang := range map[string]chan struct{}{"closes": nil, "hangs": make(chan struct{})} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inner, err := mem.Open(mem.Options{})
			if err != nil {
				t.Fatal(err)
			}
			engine := &failing{inner, make(chan struct{}), hang}
			if hang != nil {
				defer close(hang)
			}
			said, screen := io.Pipe()
			a := &app{streams: streams{nil, screen, &bytes.Buffer{}}, output: "json"}
			a.openJournal = func(config.Data, *slog.Logger) (journal.Engine, error) { return engine, nil }
			cfg := allSettings.Default()
			cfg.Data.Dir = t.TempDir()
			cfg.HTTP.Listen = "127.0.0.1:0"
			ended := make(chan error, 1)
			go func() { ended <- a.runHub(t.Context(), cfg, slog.New(slog.DiscardHandler)) }()
			if _, err := said.Read(make([]byte, 4096)); err != nil {
				t.Fatal(err)
			}
			start := time.Now()
			close(engine.failed)
			err = <-ended
			if err == nil || !strings.Contains(err.Error(), "the journal failed and admits nothing more: sync: input/output error") {
				t.Errorf("ended with %v", err)
			}
			if hang != nil && !strings.Contains(err.Error(), "the journal did not close in time") {
				t.Errorf("does not say that closing hung: %v", err)
			}
			if took := time.Since(start); took > 5*time.Second {
				t.Errorf("took %v", took)
			}
		})
	}
}
