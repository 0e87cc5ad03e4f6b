package jetstream

import (
	"time"

	"github.com/nats-io/nats.go"
)

// Older exports older.
var Older = older

// Subscriptions returns the number of subscriptions of the connection.
func (l *Log) Subscriptions() int { return l.nc.NumSubscriptions() }

// Choose is called by the connection while it reconnects.
func (l *Log) Choose(pool []nats.Server, info nats.ServerInfo) (*nats.Server, time.Duration) {
	return l.choose(pool, info)
}

// MoveTo ends a search that has found a server.
func (l *Log) MoveTo(url string) { l.moveTo(url) }

// Moving reports whether MoveTo has begun and has not ended.
func (l *Log) Moving() bool {
	if !l.mu.TryLock() {
		return true
	}
	defer l.mu.Unlock()
	return l.prefer != ""
}

// Connected reports whether the connection is established.
func (l *Log) Connected() bool { return l.nc.IsConnected() }
