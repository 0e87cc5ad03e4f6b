package api

import (
	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/view"
)

// perEntry is about how many bytes an envelope has besides its data.
const perEntry = 512

// viewLog reads what a participant sees of a channel, as input of a view. All of it
// is in memory at once, so it is bounded. If recent is not 0, only so many of the
// last entries are kept whole, and of the others only the sender. The caller calls
// release when the view is made, before it is written, so that a slow reader does not
// block others. Calling it twice is harmless.
func (a *API) viewLog(c *call, m *channel.Metadata, as string, recent int) (in view.Input, release func(), err error) {
	held, most := int64(0), a.cfg.Limits.View
	hold := func(n int64) error {
		held += n
		all := a.viewing.Add(n)
		switch {
		case held > most:
			return fault.New(fault.TooLarge, "channel '%s' is too long for one view, which is made of %d bytes at most (limits.view); read it in pages at /v1/channels/%s/events, "+
				"or its end at /v1/channels/%s/views/%s", m.ID, most, m.ID, m.ID, view.WindowedSummary)
		case all > 4*most:
			return fault.New(fault.Unavailable, "the views being made hold %d bytes already, which is the limit (four times limits.view); try again", 4*most)
		}
		return nil
	}
	giveBack := func() { a.viewing.Add(-held); held = 0 }
	defer func() {
		if err != nil {
			giveBack()
		}
	}()
	adapter, err := a.hub.Adapter(c.Context(), m.ID)
	if err != nil {
		return in, nil, err
	}
	visible, err := a.hub.Viewer(c.Context(), m.ID, as)
	if err != nil {
		return in, nil, err
	}
	shown := &window{Renderer: view.TextOnly{}, from: map[string]*envelope.Envelope{}}
	if own, ok := adapter.(channel.Renderer); ok {
		shown.Renderer = own
	}
	in = view.Input{Participant: as, Adapter: adapter, Channel: m, Name: a.hub.Name, Render: shown, Visible: func(*envelope.Envelope) bool { return true }}
	for e, err := range a.hub.Log(c.Context(), m.ID, 0, 0) {
		if err != nil {
			return in, nil, err
		}
		sees, err := visible(e)
		if err != nil {
			return in, nil, err
		}
		if !sees {
			continue
		}
		if recent > 0 {
			if _, ok := shown.Render(e); !ok {
				continue
			}
			if gone := len(in.Log) - recent; gone >= 0 {
				_ = hold(16 - sizeOf(in.Log[gone])) // smaller than before
				in.Log[gone] = shown.only(in.Log[gone].Sender)
			}
		}
		c.answer.Read(len(e.Data))
		if err := hold(sizeOf(e)); err != nil {
			return in, nil, err
		}
		in.Log = append(in.Log, e)
	}
	return in, giveBack, nil
}

func sizeOf(e *envelope.Envelope) int64 { return int64(len(e.Data)) + perEntry }

// window renders entries of which only the sender was kept.
type window struct {
	channel.Renderer
	from map[string]*envelope.Envelope
}

// only returns an entry with nothing but its sender.
func (w *window) only(sender string) *envelope.Envelope {
	left, ok := w.from[sender]
	if !ok {
		left = &envelope.Envelope{Sender: sender}
		w.from[sender] = left
	}
	return left
}

// Render makes a window a channel.Renderer.
func (w *window) Render(e *envelope.Envelope) (string, bool) {
	if w.from[e.Sender] == e {
		return "", true
	}
	return w.Renderer.Render(e)
}
