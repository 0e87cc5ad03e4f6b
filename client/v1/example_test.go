package v1_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"

	"github.com/parley-hub/parley/adapter"
	v1 "github.com/parley-hub/parley/client/v1"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/hub"
	"github.com/parley-hub/parley/identity"
	"github.com/parley-hub/parley/journal/mem"
	"github.com/parley-hub/parley/server/access"
	"github.com/parley-hub/parley/server/api"
)

// An operator opens a channel between two agents, says something in it and
// reads it to its end.
func Example() {
	base, stop := startHub("alice", "bob")
	defer stop()
	ctx := context.Background()
	hub, err := v1.New(base, v1.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	ch, err := hub.OpenChannel(ctx, v1.Opening{Type: "conversation", Creator: "alice", Participants: []string{"bob"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	text := "How are you?"
	if _, err := hub.Send(ctx, ch.ID, v1.Posting{Sender: "alice", Text: &text}); err != nil {
		fmt.Println(err)
		return
	}
	err = hub.Events(ctx, ch.ID, v1.EventQuery{As: "bob"}, func(ev *v1.Event) error {
		if ev.Type == envelope.TypeText {
			fmt.Println(ch.Name(ev.Sender), string(ev.Data))
		}
		return nil
	})
	if err != nil {
		fmt.Println(err)
	}
	// Output: alice {"text":"How are you?"}
}

// A reader follows a channel until it closes. A hub that restarts meanwhile is
// waited for.
func ExampleClient_FollowEvents() {
	base, stop := startHub("alice", "bob")
	defer stop()
	ctx := context.Background()
	hub, _ := v1.New(base, v1.Options{})
	ch, err := hub.OpenChannel(ctx, v1.Opening{Type: "conversation", Creator: "alice", Participants: []string{"bob"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	if _, err := hub.CloseChannel(ctx, ch.ID, "done"); err != nil {
		fmt.Println(err)
		return
	}
	err = hub.FollowEvents(ctx, ch.ID, v1.EventQuery{}, func(f v1.Frame) error {
		ev, err := v1.ParseEvent(f.Data)
		if err != nil {
			return err
		}
		if ev.Type == envelope.TypeClosed {
			fmt.Println(ev.Type)
			return v1.ErrStop
		}
		return nil
	})
	if err != nil {
		fmt.Println(err)
	}
	// Output: ag2.channel.closed
}

// startHub stands for parley serve on this machine, whose operator asks. The
// agents accept every invitation.
func startHub(names ...string) (base string, stop func()) {
	ctx := context.Background()
	quiet := slog.New(slog.DiscardHandler)
	engine, _ := mem.Open(mem.Options{})
	h, _ := hub.Open(ctx, engine, hub.Options{Adapters: adapter.All(), Log: quiet})
	for _, name := range names {
		register(ctx, h, name)
	}
	serve := api.New(api.Config{Hub: h, Version: "test", Log: quiet})
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		operator := access.Principal{Role: access.Operator}
		serve.ServeHTTP(w, r.WithContext(access.With(r.Context(), operator)))
	}))
	return web.URL, func() {
		web.CloseClientConnections()
		web.Close()
		h.Close()
		_ = engine.Close()
	}
}

func register(ctx context.Context, h *hub.Hub, name string) {
	profile, err := h.Register(ctx, hub.Registration{
		Passport: &identity.Passport{Name: name, Auth: identity.Auth{Scheme: identity.SchemeNone}},
	})
	if err == nil {
		err = h.Bind(profile.ID(), acker{h})
	}
	if err != nil {
		panic(err)
	}
}

// acker accepts invitations.
type acker struct{ h *hub.Hub }

func (acker) ID() string { return "acker" }

func (a acker) Deliver(n *hub.Notice) error {
	if n.Envelope.Type == envelope.TypeInvite {
		a.h.Admit(context.Background(), &envelope.Envelope{
			Channel: n.Envelope.Channel, Sender: n.Recipient, Type: envelope.TypeInviteAck, Data: []byte(`{}`),
		}, nil)
	}
	return nil
}

func (a acker) Replay(_ context.Context, n *hub.Notice) error { return a.Deliver(n) }

func (acker) CutOff(error) {}
