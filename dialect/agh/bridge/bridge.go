// Package bridge lets AGH's peers take part in the channels of other dialects. A peer
// that a channel names is told what concerns it in its direct room with the channel's
// creator, and what it says there about that is said in the channel. It stores
// nothing of its own: the hub's cursors say how far each peer was told and heard, and
// an operation that is repeated uses the same id.
package bridge

import (
	"context"
	"errors"
	"iter"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/parley-hub/parley/adapter/work"
	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/dialect/agh/wire"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/hub"
	"github.com/parley-hub/parley/identity"
)

// Hub is what the bridge asks of the hub.
type Hub interface {
	Agents(ctx context.Context, q hub.AgentQuery) ([]hub.Profile, error)
	AgentByID(id string) (hub.Profile, error)
	Details(ctx context.Context, id string) (hub.Details, error)
	SetResume(ctx context.Context, id string, resume *identity.Resume) error
	Name(id string) string

	Attach(ctx context.Context, agent string, at hub.Endpoint, a hub.Attachment) error
	Unbind(at hub.Endpoint, agents ...string)
	AckReader(ctx context.Context, agent, reader, channelID, envelopeID string) error
	ReaderCursor(ctx context.Context, agent, reader, channelID string) (string, error)

	Channel(ctx context.Context, id string) (*channel.Metadata, error)
	Channels(ctx context.Context, o hub.ListOptions) (list []*channel.Metadata, next string, err error)
	Sight(ctx context.Context, channelID string, agents []string) (func(*envelope.Envelope) bool, error)
	AdapterFor(m *channel.Metadata) channel.Adapter
	CanSend(ctx context.Context, channelID, sender, eventType string) (bool, error)
	Log(ctx context.Context, channelID string, from, to uint64) iter.Seq2[*envelope.Envelope, error]
	SequenceOf(ctx context.Context, channelID, envelopeID string) (uint64, error)

	Admit(ctx context.Context, e *envelope.Envelope, by *hub.Caller) *hub.Pending
	Say(ctx context.Context, s hub.Saying, by *hub.Caller) *hub.Pending
	ReportTurnFailure(ctx context.Context, channelID, agent, envelopeID, kind, message string) error
}

// Network is what the bridge asks of AGH's runtime.
type Network interface {
	// Where is the first room in which a peer is present.
	Where(p Peer) (room string, ok bool)
	// Card is how a present peer last introduced itself; nil: it did not.
	Card(p Peer) *wire.PeerCard
	// Tell has an identity, which is joined to the room for it, say something to the
	// peer in their direct room. It returns when that is durable.
	Tell(ctx context.Context, p Peer, room string, t Telling) error
	// Reject answers what a peer said under work that its counterpart opened.
	Reject(ctx context.Context, p Peer, said *wire.Envelope, why error) error
	// Cancel ends the open work of a peer whose id begins with a prefix.
	Cancel(ctx context.Context, p Peer, prefix, reason string) error
	// Rooms lists the ids of a peer's direct rooms.
	Rooms(ctx context.Context, p Peer) ([]string, error)
}

// Telling is something that is said to a peer.
type Telling struct {
	As     string // the identity that says it
	ID     string // of the message; a second one with it is not sent
	Work   string // empty: nothing is asked of the peer
	Text   string
	Intent string
	Trace  string
	Cause  string // the message that it answers, if the peer knows that
	Cross  wire.Crossing
}

// Peer is one of AGH's peers.
type Peer struct{ Workspace, ID string }

// Prefix begins the names of AGH's peers.
const Prefix = wire.Dialect + "/"

// Name returns the name of a peer in other dialects.
func (p Peer) Name() string { return Prefix + p.Workspace + "/" + p.ID }

// ParseName reads the name of a peer.
func ParseName(name string) (Peer, bool) {
	rest, ok := strings.CutPrefix(name, Prefix)
	if !ok {
		return Peer{}, false
	}
	at := strings.LastIndexByte(rest, '/')
	if at < 0 {
		return Peer{}, false
	}
	p := Peer{rest[:at], rest[at+1:]}
	return p, wire.ValidWorkspace(p.Workspace) && wire.ValidPeerOrHandle(p.ID)
}

// Accept says when a peer has taken an invitation.
type Accept string

// When a peer has taken an invitation: by being present, or by a receipt.
const (
	AcceptPresent Accept = "present"
	AcceptReceipt Accept = "receipt"
)

// Config says how the bridge works.
type Config struct {
	Hub     Hub
	Network Network
	Accept  Accept // empty: AcceptPresent
	Waiting int    // notices that wait for one peer; 0: 256
	Log     *slog.Logger
	Now     func() time.Time
	// Resumes is how often what a peer says of itself is stored.
	Resumes time.Duration
}

// Bridge tells and hears the peers that channels of other dialects name.
type Bridge struct {
	cfg  Config
	ctx  context.Context
	stop context.CancelFunc
	work sync.WaitGroup

	mu      sync.Mutex
	members map[Peer]*member
}

// New makes a bridge. It does nothing before Start.
func New(cfg Config) *Bridge {
	if cfg.Waiting <= 0 {
		cfg.Waiting = 256
	}
	b := &Bridge{cfg: cfg, members: map[Peer]*member{}}
	b.ctx, b.stop = context.WithCancel(context.Background())
	return b
}

// mostMembers is more than a hub registers.
const mostMembers = 1 << 30

// Start finds the peers that channels name, tells those who are present, and hears
// what they said while nobody listened.
func (b *Bridge) Start(ctx context.Context) error {
	all, err := b.cfg.Hub.Agents(ctx, hub.AgentQuery{Query: identity.Query{Text: Prefix}, Names: true, Limit: mostMembers})
	if err != nil {
		return err
	}
	for _, p := range all {
		b.Registered(p.Passport)
	}
	return nil
}

// Close stops the bridge and waits for its goroutines.
func (b *Bridge) Close() {
	b.mu.Lock()
	b.stop()
	b.mu.Unlock()
	b.work.Wait()
}

// Registered adds the peer of an identity that was stored, if it is a peer's.
func (b *Bridge) Registered(p *identity.Passport) {
	peer, ok := ParseName(p.Name)
	if !ok || p.AgentID != wire.RemoteIdentity(peer.Workspace, peer.ID) {
		return
	}
	b.mu.Lock()
	m := b.members[peer]
	if m == nil {
		m = &member{b: b, id: p.AgentID, Peer: peer, rooms: map[string]bool{}}
		b.members[peer] = m
	}
	b.mu.Unlock()
	m.came()
	b.run(func() { m.catchUp(b.ctx) })
}

// Unregistered removes the peer of an identity that was removed.
func (b *Bridge) Unregistered(p *identity.Passport) {
	peer, ok := ParseName(p.Name)
	if !ok {
		return
	}
	b.mu.Lock()
	m := b.members[peer]
	delete(b.members, peer)
	b.mu.Unlock()
	if m != nil {
		m.end()
	}
}

func (b *Bridge) member(p Peer) *member {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.members[p]
}

// Came says that a peer is present, or has introduced itself anew.
func (b *Bridge) Came(p Peer) {
	if m := b.member(p); m != nil {
		m.came()
	}
}

// Went says that a peer is no longer present in a room.
func (b *Bridge) Went(p Peer) {
	if m := b.member(p); m != nil {
		if _, present := b.cfg.Network.Where(p); !present {
			m.end()
		}
	}
}

// Heard says that a peer said something in one of its direct rooms.
func (b *Bridge) Heard(p Peer, workID, channelID string) {
	if _, _, ok := work.About(workID); !ok {
		return
	}
	if m := b.member(p); m != nil {
		m.hearLater(channelID)
	}
}

// run runs a function in a goroutine that Close waits for, unless the bridge is closed.
func (b *Bridge) run(fn func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ctx.Err() == nil {
		b.work.Go(fn)
	}
}

// pause is the time between an error and the next attempt.
const pause = time.Second

// rest waits after an error. It returns false when the bridge is being closed.
func rest(ctx context.Context) bool {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// errAbsent ends the telling of a peer until it comes back.
var errAbsent = errors.New("the peer is not present")
