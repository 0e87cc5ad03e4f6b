package demo

import (
	"context"
	"encoding/json"
	"strings"
	"sync"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-hub/parley/client/hpd"
	v1 "github.com/parley-hub/parley/client/v1"
	"github.com/parley-hub/parley/dialect/hpd/wire"
)

// streamer is database: a client of HPD, which sees the channel as a session. It
// follows its events, and answers a message with an input.
type streamer struct {
	hub   *hpd.Client
	name  string
	line  string
	heard func(envelopeID string)
	stop  context.CancelFunc
	work  sync.WaitGroup
}

func newStreamer(hub *v1.Client, name, line string, heard func(string)) *streamer {
	return &streamer{hub: hpd.New(hub), name: name, line: line, heard: heard, stop: func() {}}
}

// follow plays until the channel ends.
func (s *streamer) follow(ctx context.Context, channel string) {
	ctx, s.stop = context.WithCancel(ctx)
	at := wire.Scope{Session: channel, Branch: wire.MainBranch}
	said := false
	s.work.Go(func() {
		// A failure shows in the log that is checked.
		_ = s.hub.Follow(ctx, at, "", func(_ string, data jsontext.Value) error {
			var event struct {
				ID   string `json:"eventId"`
				Type string `json:"type"`
			}
			if json.Unmarshal(data, &event) != nil {
				return nil
			}
			id, _, _ := strings.Cut(event.ID, ".")
			s.heard(id)
			if event.Type == "MESSAGE_COMPLETED" && !said {
				_, err := s.hub.Input(ctx, s.name, at, s.line)
				said = err == nil // otherwise it is somebody else's turn
			}
			return nil
		})
	})
}

func (s *streamer) leave() {
	s.stop()
	s.work.Wait()
}
