package client_test

import (
	"context"
	"fmt"
	"net/http/httptest"
	"strings"

	"github.com/parley-hub/parley/adapter"
	"github.com/parley-hub/parley/adapter/turn"
	"github.com/parley-hub/parley/agent"
	"github.com/parley-hub/parley/client"
	"github.com/parley-hub/parley/dialect/ag2"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/hub"
	"github.com/parley-hub/parley/identity"
	"github.com/parley-hub/parley/journal/mem"
	"github.com/parley-hub/parley/view"
)

// An agent and a person, each with a connection of its own to a hub that runs
// elsewhere.
func Example() {
	url, stop := startHub()
	defer stop()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()

	// The agent's program.
	one, _ := client.Dial(ctx, url, client.Options{Log: quiet})
	defer one.Close()
	me, err := one.Attach(ctx, client.Registration{Passport: identity.Passport{Name: "shouter"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	shout := agent.ModelFunc(func(_ context.Context, p *agent.Prompt) (*agent.Response, error) {
		return &agent.Response{Text: strings.ToUpper(p.Input())}, nil
	})
	go func() { _ = agent.New(me, shout, agent.Options{}).Run(ctx) }()

	// The person's program.
	two, _ := client.Dial(ctx, url, client.Options{Log: quiet})
	defer two.Close()
	ines, _ := two.Attach(ctx, client.Registration{Passport: identity.Passport{Name: "ines", Kind: identity.Human}})
	person := agent.NewHuman(ines, agent.HumanOptions{})
	defer person.Disconnect()
	talk, err := person.Open(ctx, agent.Opening{Type: "consulting", Participants: []string{me.ID()}})
	if err != nil {
		fmt.Println(err)
		return
	}
	if _, err := person.Send(ctx, talk.ID, "hello over there", turn.Address{}); err != nil {
		fmt.Println(err)
		return
	}
	reply, _ := person.Next(ctx, func(e *envelope.Envelope) bool { return e.Type == envelope.TypeText })
	text, _ := view.TextOnly{}.Render(reply)
	fmt.Println(text)
	// Output: HELLO OVER THERE
}

// startHub stands for parley serve.
func startHub() (url string, stop func()) {
	ctx := context.Background()
	engine, _ := mem.Open(mem.Options{Store: mem.NewStore()})
	h, _ := hub.Open(ctx, engine, hub.Options{Adapters: adapter.All(), Log: quiet})
	server, _ := ag2.New(ag2.Config{Hub: h, Log: quiet})
	web := httptest.NewServer(server)
	return strings.Replace(web.URL, "http", "ws", 1), func() {
		_ = server.Close()
		web.Close()
		h.Close()
		_ = engine.Close()
	}
}
