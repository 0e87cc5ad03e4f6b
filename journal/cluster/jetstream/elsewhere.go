package jetstream

import (
	"context"
	"slices"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// A node may be connected to a server that is cut off from the others, and does
// not know it: such a server takes messages, answers questions about streams that
// it leads, and acknowledges nothing. Going to any other server does not help when
// no server has a quorum, and costs subscriptions. So the others are asked first:
// the connection moves when one of them knows a leader of the stream that the own
// server does not know.

// probe bounds one question to another server.
const probe = time.Second

// Elsewhere implements port.Log. It looks and moves in the background, one at a
// time.
func (l *Log) Elsewhere(shard int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.looking || l.closed {
		return
	}
	l.looking = true
	l.looks.Go(func() {
		better := l.better(shard)
		l.mu.Lock()
		defer l.mu.Unlock()
		l.looking = false
		if better != "" && !l.closed {
			l.prefer = better
			_ = l.nc.ForceReconnect()
		}
	})
}

// better is the address of a server that knows a leader of a stream which the own
// one does not know; "" when there is none.
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
			return "" // the own server is one of them
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

// leader is who leads a stream, as a server knows it.
func (l *Log) leader(js jetstream.JetStream, shard int) string {
	ctx, cancel := context.WithTimeout(context.Background(), probe)
	defer cancel()
	s, err := js.Stream(ctx, l.stream(shard))
	if err != nil || s.CachedInfo().Cluster == nil {
		return ""
	}
	return s.CachedInfo().Cluster.Leader
}

// choose chooses the server that was found to be better, once.
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
