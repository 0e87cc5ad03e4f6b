package hub_test

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/parley-hub/parley/adapter"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/hub"
	"github.com/parley-hub/parley/identity"
	"github.com/parley-hub/parley/journal/mem"
)

// participant is an identity that reads from an inbox within the process.
type participant struct {
	h     *hub.Hub
	id    string
	inbox *hub.Inbox
}

// join registers a name and binds an inbox to it.
func join(h *hub.Hub, name string, kind identity.Kind) *participant {
	p, err := h.Register(context.Background(), hub.Registration{
		Passport: &identity.Passport{Name: name, Kind: kind, Auth: identity.Auth{Scheme: identity.SchemeNone}},
	})
	if err != nil {
		panic(err)
	}
	box := hub.NewInbox(0)
	if err := h.Bind(p.ID(), box); err != nil {
		panic(err)
	}
	return &participant{h: h, id: p.ID(), inbox: box}
}

// next acks invitations and returns the next other envelope.
func (p *participant) next() *envelope.Envelope {
	for {
		n, err := p.inbox.Next(context.Background())
		if err != nil {
			panic(err)
		}
		switch n.Envelope.Type {
		case envelope.TypeInvite:
			p.post(n.Envelope.Channel, envelope.TypeInviteAck, `{}`)
		case envelope.TypeText, envelope.TypePacket, envelope.TypeClosed:
			return n.Envelope
		}
	}
}

func (p *participant) post(channelID, eventType, data string) {
	e := &envelope.Envelope{Channel: channelID, Sender: p.id, Type: eventType, Data: []byte(data)}
	if _, err := p.h.Post(context.Background(), e, nil); err != nil {
		panic(err)
	}
}

func (p *participant) open(kind, knobs string, others ...*participant) string {
	o := hub.Opening{Creator: p.id, Type: kind, Knobs: []byte(knobs)}
	for _, other := range others {
		o.Participants = append(o.Participants, other.id)
	}
	opened, err := p.h.Open(context.Background(), o)
	if err != nil {
		panic(err)
	}
	return opened.ID
}

func openHub(store *mem.Store) (h *hub.Hub, stop func()) {
	engine, err := mem.Open(mem.Options{Store: store})
	if err != nil {
		panic(err)
	}
	h, err = hub.Open(context.Background(), engine, hub.Options{
		Adapters: adapter.All(), Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		panic(err)
	}
	return h, func() { h.Close(); _ = engine.Close() }
}

// Two agents in a conversation.
func Example() {
	h, stop := openHub(mem.NewStore())
	defer stop()
	alice, bob := join(h, "alice", identity.Agent), join(h, "bob", identity.Agent)
	heard := make(chan string)
	go func() {
		e := bob.next()
		heard <- string(e.Data)
		bob.post(e.Channel, envelope.TypeText, `{"text":"fine, and you?"}`)
	}()
	ch := alice.open("conversation", "", bob)
	alice.post(ch, envelope.TypeText, `{"text":"how are you?"}`)
	fmt.Println("bob hears", <-heard)
	fmt.Println("alice hears", string(alice.next().Data))
	// Output:
	// bob hears {"text":"how are you?"}
	// alice hears {"text":"fine, and you?"}
}

// A workflow in which the graph, and then a handoff, decide who speaks.
func Example_workflow() {
	h, stop := openHub(mem.NewStore())
	defer stop()
	desk, tech, boss := join(h, "desk", identity.Agent), join(h, "tech", identity.Agent), join(h, "boss", identity.Agent)
	names := map[string]string{desk.id: "desk", tech.id: "tech", boss.id: "boss"}
	go func() {
		e := tech.next()
		tech.post(e.Channel, envelope.TypePacket, `{"routing":{"kind":"handoff","tool":"escalate","target":"`+boss.id+`"},"body":"too hard"}`)
	}()
	go func() {
		boss.next() // the ticket, which is not boss's turn
		e := boss.next()
		boss.post(e.Channel, envelope.TypePacket, `{"routing":{"kind":"finish","reason":"solved"},"body":"done"}`)
	}()
	graph := `{"graph":{"initial_speaker":"` + desk.id + `","transitions":[
		{"when":{"name":"from_speaker","args":{"agent_id":"` + desk.id + `"}},"then":{"name":"agent","args":{"agent_id":"` + tech.id + `"}}}]}}`
	ch := desk.open("workflow", graph, tech, boss)
	desk.post(ch, envelope.TypeText, `{"text":"the printer is on fire"}`)
	for e := desk.next(); e.Type != envelope.TypeClosed; e = desk.next() {
		fmt.Println(names[e.Sender], "spoke")
	}
	m, _ := h.Channel(context.Background(), ch)
	fmt.Println(m.State, m.CloseReason)
	// Output:
	// tech spoke
	// boss spoke
	// closed solved
}

// A human takes a turn like anyone else.
func Example_humanInTheLoop() {
	h, stop := openHub(mem.NewStore())
	defer stop()
	agent, human := join(h, "deployer", identity.Agent), join(h, "hana", identity.Human)
	go func() {
		question := human.next()
		fmt.Println("hana is asked", string(question.Data))
		human.post(question.Channel, envelope.TypeText, `{"text":"yes"}`)
	}()
	ch := agent.open("consulting", "", human)
	agent.post(ch, envelope.TypeText, `{"text":"deploy now?"}`)
	fmt.Println("the answer is", string(agent.next().Data))
	// Output:
	// hana is asked {"text":"deploy now?"}
	// the answer is {"text":"yes"}
}

// After a restart everything is as before, and missed envelopes are replayed.
func Example_replayAfterRestart() {
	store := mem.NewStore()
	h, stop := openHub(store)
	alice, bob := join(h, "alice", identity.Agent), join(h, "bob", identity.Agent)
	acked := make(chan struct{})
	go func() {
		n, _ := bob.inbox.Next(context.Background())
		bob.post(n.Envelope.Channel, envelope.TypeInviteAck, `{}`)
		close(acked)
	}()
	ch := alice.open("conversation", "", bob)
	<-acked
	h.Unbind(bob.inbox, bob.id)
	alice.post(ch, envelope.TypeText, `{"text":"are you there?"}`)
	stop()

	h, stop = openHub(store)
	defer stop()
	bob.h, bob.inbox = h, hub.NewInbox(0)
	if err := h.BindReplaying(context.Background(), bob.id, bob.inbox, ""); err != nil {
		panic(err)
	}
	fmt.Println("bob hears", string(bob.next().Data))
	// Output:
	// bob hears {"text":"are you there?"}
}
