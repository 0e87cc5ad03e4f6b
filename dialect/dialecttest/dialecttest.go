// Package dialecttest is a table of hostile clients that every dialect must
// survive, as journaltest is for engines. It does not depend on a wire format: a
// Door translates. It never accesses the internals of a hub.
package dialecttest

import (
	"net"
	"testing"
	"time"
)

// Wait bounds how long each expected event may take.
const Wait = 20 * time.Second

// Door gives access to one dialect from outside.
type Door struct {
	// Start runs a hub that serves the dialect until the test ends.
	Start func(t *testing.T, o Options) *Site
	// Garbage are messages that no client of the dialect may send, by what is wrong
	// with them, in addition to those that are wrong in every dialect.
	Garbage map[string][]byte
}

// Options of a hub. The zero value is the default hub of this machine.
type Options struct {
	// Proxied clients do not count as local, so that all of them need a key.
	Proxied bool
	// Connections is how many may be open, also from one address; 0: the default.
	Connections int
	// Patience is the time for headers, bodies and writes; 0: the default.
	Patience time.Duration
	// Answers bounds the bytes of unread answers, and Reads the bytes that are read
	// from logs in a second; 0: the default.
	Answers, Reads int
}

// Site is a running hub. A function that a dialect does not support is nil,
// and the cases that need it are left out.
type Site struct {
	// Keyless is true if agents on this machine may join without a key.
	Keyless bool
	// Key makes a key for an agent, and Revoke revokes it.
	Key    func(agent string) (token, id string)
	Revoke func(id string)
	// Join connects an agent, which is registered if necessary and accepts all
	// invitations. An empty token is not sent.
	Join func(name, token string) (Client, error)
	// Stranger connects without identifying itself.
	Stranger func() (Client, error)
	// Meet opens a conversation in which two clients receive each other's messages
	// from then on.
	Meet func(a, b Client) (room string)
	// Socket opens a bare connection to where the dialect listens. It is nil if a
	// broker listens.
	Socket func() (net.Conn, error)
	// Operator makes a request as this machine's operator.
	Operator func() error
	// Asks returns an HTTP request with which a client reads from a conversation,
	// and Tells one with which it writes.
	Asks, Tells func(c Client, room string) Request
	// Unread returns HTTP requests of a participant whose answers are long if the
	// conversation is.
	Unread func(c Client, room string) []Request
	// Tricks are paths that must not be found by any caller, written so that a
	// careless router might accept them. Asks is sent to each.
	Tricks []string
}

// Client is a client of the dialect, which may misbehave.
type Client interface {
	// ID returns the agent's id, as the dialect names senders.
	ID() string
	// Say sends a JSON object and waits until it is durable or refused.
	Say(room string, data []byte) error
	// SayAs does the same as Say, under the name of another agent.
	SayAs(room, sender string, data []byte) error
	// Hear waits for the next message of another agent: its sender and its JSON
	// object.
	Hear() (sender string, data []byte, err error)
	// Read reads a conversation from its beginning.
	Read(room string) error
	// Look reads the directory, at most limit entries, and returns how many it got.
	Look(limit int64) (int, error)
	// Send sends any bytes as one message of the dialect. It does not wait for an
	// answer.
	Send(message []byte) error
	// Stall stops reading permanently.
	Stall()
	// Gone is closed when the hub has ended the connection.
	Gone() <-chan struct{}
	Close()
}

// Run runs every case against a dialect.
func Run(t *testing.T, door Door) {
	for _, c := range []struct {
		name string
		run  func(*testing.T, Door)
	}{
		{"revoked key", revokedKey},
		{"squatter", squatter},
		{"stranger in the directory", stranger},
		{"forged sender", forgedSender},
		{"foreign reader", foreignReader},
		{"huge limit", hugeLimit},
		{"line breaks", lineBreaks},
		{"garbage", garbage},
		{"flood", flood},
		{"stuck readers", stuckReaders},
		{"silent sockets", silentSockets},
		{"pages of other sites", otherSites},
		{"tricks with paths", pathTricks},
		{"endless bodies", endlessBodies},
		{"slow bodies", slowBodies},
		{"answers that are not read", unreadAnswers},
		{"reads without end", readsWithoutEnd},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.run(t, door)
		})
	}
}

// join connects an agent or ends the test.
func (s *Site) join(t *testing.T, name, token string) Client {
	t.Helper()
	c, err := s.Join(name, token)
	if err != nil {
		t.Fatalf("%s cannot join: %v", name, err)
	}
	t.Cleanup(c.Close)
	return c
}

// agent connects an agent as the dialect admits agents: without a key, or with one
// that is made for it.
func (s *Site) agent(t *testing.T, name string) Client {
	t.Helper()
	token := ""
	if !s.Keyless {
		token, _ = s.Key(name)
	}
	return s.join(t, name, token)
}

// pair is two honest clients in a conversation.
type pair struct {
	t    *testing.T
	a, b Client
	room string
}

// honest connects two clients that are not part of the attack.
func (s *Site) honest(t *testing.T) pair {
	t.Helper()
	a, b := s.agent(t, "honest-a"), s.agent(t, "honest-b")
	return pair{t, a, b, s.Meet(a, b)}
}

// works checks that the next message that one of the pair receives is the one that
// the other sends.
func (p pair) works(text string) {
	p.t.Helper()
	want := `{"text":"` + text + `"}`
	if err := p.a.Say(p.room, []byte(want)); err != nil {
		p.t.Fatalf("an honest client is refused: %v", err)
	}
	sender, data, err := p.b.Hear()
	if err != nil || sender != p.a.ID() || !sameJSON(data, []byte(want)) {
		p.t.Fatalf("an honest client heard %.200s of %s (%v), want %s", data, sender, err, want)
	}
}

// gone waits until the hub has disconnected a client.
func gone(t *testing.T, c Client, who string) {
	t.Helper()
	select {
	case <-c.Gone():
	case <-time.After(Wait):
		t.Errorf("%s is still connected", who)
	}
}
