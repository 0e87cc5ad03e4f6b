package wsconn

import (
	"cmp"
	"log/slog"
	"time"
)

// Config says how a Server treats its connections. The zero value of each
// field but Keys is a sensible one.
type Config struct {
	// Keys is the config section that holds the limits, such as "ag2.limits";
	// every refusal names the key to change.
	Keys string
	Log  *slog.Logger     // nil: slog.Default()
	Now  func() time.Time // nil: time.Now
	// NotText is the close reason for a text message that is not UTF-8; empty:
	// one that says so.
	NotText string
	// OnQueue is called with each frame that is queued, for debugging. It must
	// not wait and must not use the connection. May be nil.
	OnQueue func(*Conn, *Frame)

	Limits Limits
}

// Limits bound what connections hold and how long they take. Zero is the
// default given with each. The names in the comments are the config keys in
// the section Config.Keys.
type Limits struct {
	Connections int // connections: 20,000
	FrameBytes  int // frame_bytes: 1 MiB of one message to the hub
	QueueBytes  int // queue_bytes: 8 MiB waiting for one slow reader

	Handshake time.Duration // handshake: 10 s to upgrade
	Message   time.Duration // message: 30 s from a message's first byte to its last
	Ping      time.Duration // ping: 20 s of silence until a ping is sent
	Pong      time.Duration // pong: 20 s to answer it
	Write     time.Duration // write: 30 s to take what is written
}

func (c Config) withDefaults() Config {
	c.Log = cmp.Or(c.Log, slog.Default())
	c.NotText = cmp.Or(c.NotText, "a text message is not UTF-8")
	if c.Now == nil {
		c.Now = time.Now
	}
	l := &c.Limits
	l.Connections = cmp.Or(l.Connections, 20_000)
	l.FrameBytes = cmp.Or(l.FrameBytes, 1<<20)
	l.QueueBytes = cmp.Or(l.QueueBytes, 8<<20)
	l.Handshake = cmp.Or(l.Handshake, 10*time.Second)
	l.Message = cmp.Or(l.Message, 30*time.Second)
	l.Ping = cmp.Or(l.Ping, 20*time.Second)
	l.Pong = cmp.Or(l.Pong, 20*time.Second)
	l.Write = cmp.Or(l.Write, 30*time.Second)
	return c
}
