package demo

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	v1 "github.com/parley-hub/parley/client/v1"
	"github.com/parley-hub/parley/internal/loop"
)

// Where the peer connects, and under which name it takes part in channels.
const (
	workspace = "demo"
	room      = "incident"
	peerID    = "network"
	peerName  = "agh/" + workspace + "/" + peerID
)

// message is an envelope of the AGH Network.
type message map[string]any

func (m message) text(name string) string {
	text, _ := m[name].(string)
	return text
}

// peer is network: it knows the AGH Network and a NATS server, and no hub.
type peer struct {
	conn  *nats.Conn
	line  string
	ready <-chan struct{} // it answers once this is closed
	heard func(envelopeID string)
	stop  context.CancelFunc
	work  sync.WaitGroup

	mu    sync.Mutex
	about message // the newest work; nil: none yet
}

// joinPeer makes a room in which the hub sees peers, and greets there.
func joinPeer(ctx context.Context, hub *v1.Client, process *process, line string, ready <-chan struct{}, heard func(string)) (*peer, error) {
	err := hub.Call(ctx, http.MethodPost, "/agh/workspaces/"+workspace+"/network/channels",
		map[string]any{"channel": room, "purpose": "the incident", "agent_names": []string{"triage"}}, nil)
	if err != nil {
		return nil, err
	}
	token, err := os.ReadFile(filepath.Join(process.dir, "nats-token"))
	if err != nil {
		return nil, err
	}
	p := &peer{line: line, ready: ready, heard: heard}
	p.conn, err = nats.Connect("nats://"+process.nats, nats.Token(strings.TrimSpace(string(token))),
		nats.MaxReconnects(-1), nats.ReconnectWait(50*time.Millisecond), nats.ReconnectBufSize(-1))
	if err != nil {
		return nil, err
	}
	ctx, p.stop = context.WithCancel(ctx)
	if _, err := p.conn.Subscribe(subject(peerID), func(m *nats.Msg) { p.receive(ctx, m) }); err != nil {
		p.leave()
		return nil, err
	}
	p.work.Go(func() { p.greet(ctx) })
	return p, nil
}

// subject returns the subject of messages to a peer; without one, to all peers.
func subject(to string) string {
	base := "agh.network.v0." + workspace + "." + room + "."
	if to == "" {
		return base + "broadcast"
	}
	sum := sha256.Sum256([]byte(to))
	return base + "peer." + hex.EncodeToString(sum[:16])
}

func (p *peer) leave() {
	p.stop()
	p.work.Wait()
	p.conn.Close()
}

// send publishes a message, and tries again while the hub and its NATS server are away.
func (p *peer) send(ctx context.Context, m message) {
	full := message{
		"protocol": "agh-network/v0", "id": "demo-" + rand.Text(), "workspace_id": workspace, "channel": room,
		"from": peerID, "to": nil, "ts": time.Now().Unix(), "proof": nil,
	}
	maps.Copy(full, m)
	data, err := json.Marshal(full)
	if err != nil {
		return // maps of texts always encode
	}
	for ctx.Err() == nil {
		if p.conn.Publish(subject(full.text("to")), data) == nil && p.conn.FlushTimeout(time.Second) == nil {
			return
		}
		_ = loop.Pause(ctx, 100*time.Millisecond)
	}
}

// greet announces the peer at an interval.
func (p *peer) greet(ctx context.Context) {
	for ctx.Err() == nil {
		p.send(ctx, message{"kind": "greet", "body": map[string]any{"peer_card": map[string]any{
			"peer_id": peerID, "display_name": "Network", "profiles_supported": []string{"agh-network/v0"},
			"capabilities": []string{"switches"}, "artifacts_supported": []string{}, "trust_modes_supported": []string{},
			"ext": map[string]any{"agh.capabilities_brief": []any{map[string]any{"id": "switches", "summary": "Looks after the switches."}}},
		}}})
		_ = loop.Pause(ctx, 500*time.Millisecond)
	}
}

// receive reads messages, and answers those that are work.
func (p *peer) receive(ctx context.Context, m *nats.Msg) {
	var told message
	if json.Unmarshal(m.Data, &told) != nil || told.text("kind") != "say" {
		return
	}
	if ext, ok := told["ext"].(map[string]any); ok {
		origin, _ := ext["parley.origin"].(map[string]any)
		p.heard(message(origin).text("id"))
	}
	if told.text("work_id") == "" {
		return
	}
	about := message{"surface": "direct", "thread_id": nil, "direct_id": told["direct_id"], "to": told["from"], "work_id": told["work_id"]}
	p.mu.Lock()
	begun := p.about != nil
	p.about = about
	p.mu.Unlock()
	if begun {
		return // it concerns the work in progress: the newest message is answered
	}
	p.work.Go(func() {
		p.answer(ctx, about, "receipt", map[string]any{"for_id": told["id"], "status": "accepted"})
		select {
		case <-p.ready:
			p.mu.Lock()
			last := p.about
			p.mu.Unlock()
			p.answer(ctx, last, "say", map[string]any{"text": p.line})
		case <-ctx.Done():
		}
	})
}

func (p *peer) answer(ctx context.Context, about message, kind string, body map[string]any) {
	m := maps.Clone(about)
	m["kind"], m["body"] = kind, body
	p.send(ctx, m)
}
