package hub_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/parley-hub/parley/adapter"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/hub"
	"github.com/parley-hub/parley/identity"
	"github.com/parley-hub/parley/journal/mem"
)

type sink struct {
	h   *hub.Hub
	id  string
	got []*hub.Notice
}

func (s *sink) ID() string { return "e" }
func (s *sink) Deliver(n *hub.Notice) error {
	s.got = append(s.got, n)
	if n.Envelope.Type == envelope.TypeInvite {
		go s.h.Post(context.Background(), &envelope.Envelope{Channel: n.Channel.ID, Sender: n.Recipient, Type: envelope.TypeInviteAck, Data: []byte(`{}`)}, nil)
	}
	return nil
}
func (s *sink) Replay(_ context.Context, n *hub.Notice) error { return s.Deliver(n) }

func TestSmoke(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := context.Background()
		j, _ := mem.Open(mem.Options{})
		h, err := hub.Open(ctx, j, hub.Options{Adapters: adapter.All()})
		if err != nil {
			t.Fatal(err)
		}
		var ids []string
		var sinks []*sink
		for _, n := range []string{"alice", "bob"} {
			p, err := h.Register(ctx, hub.Registration{Passport: &identity.Passport{Name: n, Auth: identity.Auth{Scheme: "none"}}})
			if err != nil {
				t.Fatal(err)
			}
			s := &sink{h: h, id: p.ID()}
			sinks = append(sinks, s)
			ids = append(ids, p.ID())
			if err := h.Bind(p.ID(), s); err != nil {
				t.Fatal(err)
			}
		}
		o, err := h.Open(ctx, hub.Opening{Creator: ids[0], Type: "consulting", Participants: ids[1:]})
		if err != nil {
			t.Fatal(err)
		}
		for i, text := range []string{`{"text":"q"}`, `{"text":"a"}`} {
			if _, err := h.Post(ctx, &envelope.Envelope{Channel: o.ID, Sender: ids[i], Type: envelope.TypeText, Data: []byte(text)}, nil); err != nil {
				t.Fatal(err)
			}
		}
		m, err := h.Channel(ctx, o.ID)
		t.Log(m.State, m.CloseReason, err)
		for e, err := range h.Log(ctx, o.ID, 0, 0) {
			t.Log(e.Seq, e.Type, string(e.Data), err)
		}
		for _, s := range sinks {
			for _, n := range s.got {
				t.Log(s.id, n.Envelope.Type)
			}
		}
		h.Close()
		j.Close()
	})
}
