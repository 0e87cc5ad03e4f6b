package jetstream

import (
	"context"
	"slices"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// A node may be connected to a server that is cut off from the others without
// knowing it: such a server takes messages, answers requests about streams that it
// leads, and acknowledges nothing. Moving to any other server does not help if no
// server has a quorum, and costs subscriptions. So the other servers are queried
// first: the connection moves if one of them knows a leader of the stream that the
// connected server does not know.

// probe bounds one query to another server.
const probe = time.Second

// Elsewhere implements port.Log. It searches and moves in the background, one search
// at a time.
func (l *Log) Elsewhere(shard int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.looking || l.closed {
		return
	}
	l.looking = true
	l.looks.Go(func() {
		l.moveTo(l.better(shard))
	})
}

// moveTo ends a search, and reconnects to the server that it found, if it found one.
// The connection calls choose while it holds its own lock, so it must not be called
// while l.mu is held.
func (l *Log) moveTo(better string) {
	l.mu.Lock()
	l.looking = false
	move := better != "" && !l.closed
	if move {
		l.prefer = better
	}
	l.mu.Unlock()
	if move {
		_ = l.nc.ForceReconnect()
	}
}

// better returns the address of a server that knows a leader of a stream that the
// connected server does not know, or "" if there is none.
func (l *Log) better(shard int) string {
	own, name := l.nc.ConnectedUrl(), l.nc.ConnectedServerName()
	knows := ""
	if l.nc.IsConnected() {
		knows = l.leader(l.js, shard)
	}
	for _, url := range l.nc.Servers() {
		if url == own {
			continue
		}
		switch l.ask(url, shard) {
		case "":
		case name, knows:
			return "" // the connected server is that leader or knows it
		default:
			return url
		}
	}
	return ""
}

func (l *Log) ask(url string, shard int) (leader string) {
	options := append(slices.Clone(l.opts.NATS), nats.Name("parley, looking"), nats.NoReconnect(), nats.Timeout(probe))
	nc, err := nats.Connect(url, options...)
	if err != nil {
		return ""
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		return ""
	}
	return l.leader(js, shard)
}

// leader returns the leader of a stream that a server knows.
func (l *Log) leader(js jetstream.JetStream, shard int) string {
	ctx, cancel := context.WithTimeout(context.Background(), probe)
	defer cancel()
	s, err := js.Stream(ctx, l.stream(shard))
	if err != nil || s.CachedInfo().Cluster == nil {
		return ""
	}
	return s.CachedInfo().Cluster.Leader
}

// choose returns the server that better found, once.
func (l *Log) choose(pool []nats.Server, _ nats.ServerInfo) (*nats.Server, time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	prefer := l.prefer
	l.prefer = ""
	for i := range pool {
		if prefer != "" && pool[i].URL.String() == prefer {
			return &pool[i], 0
		}
	}
	return nil, 0
}
