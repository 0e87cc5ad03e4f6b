// Package peer is a peer of the AGH Network that is written from its text, with
// nothing but a NATS client: it shares no code with the hub it talks to.
package peer

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
)

// greetInterval is short, so that tests need not wait for presence.
const greetInterval = 200 * time.Millisecond

// Peer is one peer of one channel.
type Peer struct {
	ID, Workspace, Channel string

	conn  *nats.Conn
	key   *Key
	works ledger
	stop  context.CancelFunc
	done  sync.WaitGroup

	mu   sync.Mutex
	all  []Envelope // everything that came, in order
	more chan struct{}
}

// Options say where and who a peer is.
type Options struct {
	URL, Token             string
	Workspace, Channel, ID string
	Key                    *Key // signs what is sent; its handle is the peer's id
	Silent                 bool // it does not greet
}

// Join connects, subscribes and greets, at once and then at an interval.
func Join(o Options) (*Peer, error) {
	p := &Peer{ID: o.ID, Workspace: o.Workspace, Channel: o.Channel, key: o.Key, more: make(chan struct{}), works: ledger{states: map[string]*work{}}}
	if o.Key != nil {
		p.ID = o.Key.Handle
	}
	var err error
	p.conn, err = nats.Connect(o.URL, nats.Token(o.Token), nats.MaxReconnects(-1), nats.ReconnectWait(50*time.Millisecond), nats.ReconnectBufSize(-1))
	if err != nil {
		return nil, err
	}
	for _, subject := range []string{
		Subject(Envelope{"workspace_id": p.Workspace, "channel": p.Channel}),
		Subject(Envelope{"workspace_id": p.Workspace, "channel": p.Channel, "to": p.ID}),
	} {
		if _, err := p.conn.Subscribe(subject, p.receive); err != nil {
			return nil, err
		}
	}
	if err := p.conn.Flush(); err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(context.Background())
	p.stop = stop
	if !o.Silent {
		p.done.Go(func() { p.greet(ctx) })
	}
	return p, nil
}

// Leave ends the peer without a message.
func (p *Peer) Leave() {
	p.stop()
	p.done.Wait()
	p.conn.Close()
}

// Card is how the peer introduces itself.
func (p *Peer) Card() map[string]any {
	return map[string]any{
		"peer_id": p.ID, "display_name": "Peer " + p.ID, "profiles_supported": []any{"agh-network/v0"}, "capabilities": []any{"tow"},
		"artifacts_supported": []any{"capability"}, "trust_modes_supported": []any{},
		"ext": map[string]any{"agh.capabilities_brief": []any{map[string]any{"id": "tow", "summary": "Tow one hull."}}},
	}
}

func (p *Peer) greet(ctx context.Context) {
	ticker := time.NewTicker(greetInterval)
	defer ticker.Stop()
	for {
		_, _ = p.Send(Envelope{"kind": "greet", "body": map[string]any{"peer_card": p.Card()}}) // the next greeting may succeed
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

// Fill adds the members that every envelope has, and the proof if the peer signs.
func (p *Peer) Fill(e Envelope) Envelope {
	full := Envelope{
		"protocol": "agh-network/v0", "id": NewID("peer-"), "workspace_id": p.Workspace, "channel": p.Channel, "from": p.ID, "to": nil,
		"ts": time.Now().Unix(), "proof": nil,
	}
	for name, value := range e {
		full[name] = value
	}
	if p.key != nil {
		full = p.key.Sign(full)
	}
	return full
}

// Send publishes an envelope and returns it as it was sent.
func (p *Peer) Send(e Envelope) (Envelope, error) {
	e = p.Fill(e)
	return e, p.Publish(Subject(e), e)
}

// Publish publishes an envelope on a subject unchanged.
func (p *Peer) Publish(subject string, e Envelope) error {
	data, err := json.Marshal(e)
	if err != nil {
		return err
	}
	p.works.apply(e)
	return p.Raw(subject, data)
}

// Raw publishes bytes on a subject.
func (p *Peer) Raw(subject string, data []byte) error {
	if err := p.conn.Publish(subject, data); err != nil {
		return err
	}
	return p.conn.FlushTimeout(5 * time.Second)
}

// receive keeps the messages of others, and answers presence requests.
func (p *Peer) receive(m *nats.Msg) {
	var e Envelope
	if len(m.Header) > 0 || m.Reply != "" || json.Unmarshal(m.Data, &e) != nil || e == nil {
		e = Envelope{"kind": "broken", "subject": m.Subject}
	}
	if e.Text("from") == p.ID {
		return
	}
	e["subject"] = m.Subject
	p.works.apply(e)
	p.mu.Lock()
	p.all = append(p.all, e)
	close(p.more)
	p.more = make(chan struct{})
	p.mu.Unlock()
	if e.Text("kind") == "whois" && e.Body("type") == "request" && (e.Text("to") == p.ID || e.Text("to") == "" && e.Body("query") == "") {
		_, _ = p.Send(Envelope{
			"kind": "whois", "to": e.Text("from"), "reply_to": e.Text("id"), "body": map[string]any{"type": "response", "peer_card": p.Card()},
		})
	}
}

// Await returns the first message that matches, which may have arrived before.
func (p *Peer) Await(ctx context.Context, what string, fits func(Envelope) bool) (Envelope, error) {
	next := 0
	for {
		p.mu.Lock()
		list, more := p.all[next:], p.more
		next = len(p.all)
		p.mu.Unlock()
		for _, e := range list {
			if fits(e) {
				return e, nil
			}
		}
		select {
		case <-more:
		case <-ctx.Done():
			return nil, fmt.Errorf("%s never heard %s; it heard %v", p.ID, what, p.Heard(func(e Envelope) bool { return e.Text("kind") != "greet" }))
		}
	}
}

// Heard is every message so far that matches.
func (p *Peer) Heard(fits func(Envelope) bool) []Envelope {
	p.mu.Lock()
	defer p.mu.Unlock()
	var found []Envelope
	for _, e := range p.all {
		if fits(e) {
			found = append(found, e)
		}
	}
	return found
}
