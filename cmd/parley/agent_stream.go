package main

import (
	"context"
	"log/slog"
	"net/http"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/parley-hub/parley/client/hpd"
	v1 "github.com/parley-hub/parley/client/v1"
	"github.com/parley-hub/parley/dialect/hpd/wire"
	"github.com/parley-hub/parley/server/config"
)

// echoStream serves HPD runs under a name until it is stopped: it repeats the input,
// one word at a time.
func (a *app) echoStream(ctx context.Context, hub *v1.Client, name, token string, pause time.Duration) error {
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	log, err := newLog(a.err, config.Log{Level: "warn", Format: "auto"})
	if err != nil {
		return err
	}
	if token, err = a.agentToken(ctx, hub, name, token); err != nil {
		return err
	}
	if token != "" {
		if hub, err = withToken(hub, token); err != nil {
			return err
		}
	}
	client := hpd.New(hub)
	if err := client.Reach(ctx); err != nil {
		return err
	}
	var once sync.Once
	return client.Produce(ctx, hpd.Producer{
		Agent: name, Repeatable: true, Log: log,
		Ready: func() { once.Do(func() { a.sayProducer(name, log) }) },
		Do:    func(ctx context.Context, run *hpd.Run) error { return echoWords(ctx, run, pause) },
	})
}

func (a *app) sayProducer(name string, log *slog.Logger) {
	err := a.print(map[string]string{"name": name, "produces": "hpd"}, linef("%s takes part as a producer of HPD runs; stop with Ctrl+C", cell(name)))
	if err != nil {
		log.Warn("standard output is closed", "error", err)
	}
}

// withToken returns a client of the same hub with another token.
func withToken(hub *v1.Client, token string) (*v1.Client, error) {
	return hubAt(hub.Addresses(), v1.Options{
		Token: token, HTTP: hub.HTTP(),
		Relocate: func() (string, *http.Client) {
			if strings.Contains(hub.Addresses(), ",") {
				return "", nil // the client finds the serving node itself
			}
			return hub.Relocate(), hub.HTTP()
		},
	})
}

// echoWords streams the text of a run's input back. If it is called again, it
// publishes the same.
func echoWords(ctx context.Context, run *hpd.Run, pause time.Duration) error {
	id := "m-" + run.Work.RuntimeRunID
	if err := run.Publish(ctx, wire.TextMessageStart{MessageID: id, Role: "assistant"}); err != nil {
		return err
	}
	for _, word := range wire.Words(run.Work.Messages) {
		if err := run.Publish(ctx, wire.TextDelta{MessageID: id, Text: word}); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause):
		}
	}
	return run.Publish(ctx, wire.TextMessageEnd{MessageID: id})
}
