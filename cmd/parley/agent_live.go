package main

import (
	"context"
	"sync"
	"time"

	"github.com/parley-hub/parley/agent"
	"github.com/parley-hub/parley/agent/runner"
)

// deltas shows a model's reply to followers of the channel while it is written. The
// model never waits for it: text that arrives while a part is being sent is sent with
// the next part, and errors are ignored.
type deltas struct {
	show func(ctx context.Context, channel string, d agent.Delta) error
	wake chan struct{}

	mu      sync.Mutex
	writing map[writing]*written // by turn, while a part waits
}

// writing identifies a reply: the answer to an envelope of a channel.
type writing struct{ channel, trigger string }

// written is how much of a reply was shown, and what waits.
type written struct {
	at    int
	text  string
	reset bool
}

// maxWriting bounds the replies that are shown at once. Further ones are shown only
// when they are complete.
const maxWriting = 1024

// showTimeout bounds how long it takes to show one part.
const showTimeout = 5 * time.Second

func newDeltas(show func(ctx context.Context, channel string, d agent.Delta) error) *deltas {
	return &deltas{show: show, wake: make(chan struct{}, 1), writing: map[writing]*written{}}
}

// observe receives the events of a reply.
func (d *deltas) observe(_ context.Context, t *agent.Turn, ev runner.Event) {
	if t == nil || t.Channel == nil || t.Trigger == nil {
		return
	}
	text := ev.Says()
	if text == "" && !ev.Reset {
		return
	}
	key := writing{t.Channel.ID, t.Trigger.ID}
	d.mu.Lock()
	w := d.writing[key]
	if w == nil {
		if len(d.writing) >= maxWriting {
			clear(d.writing) // left by turns that ended
		}
		w = &written{}
		d.writing[key] = w
	}
	if ev.Reset {
		*w = written{reset: true}
	} else {
		w.text += text
	}
	d.mu.Unlock()
	select {
	case d.wake <- struct{}{}:
	default:
	}
}

// run sends parts until it is stopped.
func (d *deltas) run(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var done sync.WaitGroup
	done.Go(func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-d.wake:
				d.flush(ctx)
			}
		}
	})
	return func() { cancel(); done.Wait() }
}

func (d *deltas) flush(ctx context.Context) {
	type part struct {
		writing
		agent.Delta
	}
	var parts []part
	d.mu.Lock()
	for key, w := range d.writing {
		if w.text == "" && !w.reset {
			continue
		}
		parts = append(parts, part{key, agent.Delta{Trigger: key.trigger, At: w.at, Text: w.text, Reset: w.reset}})
		w.at, w.text, w.reset = w.at+len(w.text), "", false
	}
	d.mu.Unlock()
	for _, p := range parts {
		ctx, cancel := context.WithTimeout(ctx, showTimeout)
		_ = d.show(ctx, p.channel, p.Delta) // the whole text follows in any case
		cancel()
	}
}
