package reader

import (
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/parley-hub/parley/fault"
)

// Link holds an identity's bonds to its endpoints, one for each reader.
type Link struct {
	mu      sync.Mutex
	bonds   []*Bond
	streams []*Connection // that it reads besides the endpoints
}

// Bond is one endpoint of an identity.
type Bond struct {
	Attachment
	Endpoint Endpoint
	since    time.Time
	// replay holds the notices that arrive during a replay to the endpoint; nil
	// outside of one.
	replay *Replay
}

// Replay holds the notices that arrive at an endpoint during a replay to it.
type Replay struct {
	kept  []*Notice
	limit int
	UpTo  map[string]uint64 // by channel: the last sequence replayed
}

// NewReplay returns a replay during which at most limit notices may arrive.
func NewReplay(limit int) *Replay { return &Replay{limit: limit, UpTo: map[string]uint64{}} }

// Deliver hands a notice to each endpoint. If there is one, it calls arrived first,
// so that counters never lag behind an answer.
func (l *Link) Deliver(n *Notice, arrived func()) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.bonds) == 0 {
		return nil
	}
	arrived()
	if len(l.bonds) == 1 {
		return l.deliverTo(l.bonds[0], n)
	}
	var failed []error
	for _, b := range slices.Clone(l.bonds) {
		if err := l.deliverTo(b, n); err != nil {
			failed = append(failed, err)
		}
	}
	return errors.Join(failed...)
}

func (l *Link) deliverTo(b *Bond, n *Notice) error {
	if b.replay == nil {
		return b.Endpoint.Deliver(n)
	}
	if limit := b.replay.limit; len(b.replay.kept) >= limit {
		err := fault.New(fault.SlowReader, "more than %d deliveries arrived during a replay (limits.replay)", limit)
		b.Endpoint.CutOff(err)
		l.remove(b)
		return err
	}
	b.replay.kept = append(b.replay.kept, n)
	return nil
}

func (l *Link) remove(gone *Bond) {
	gone.replay = nil
	l.bonds = slices.DeleteFunc(slices.Clone(l.bonds), func(b *Bond) bool { return b == gone })
}

// Bound reports whether the identity has an endpoint.
func (l *Link) Bound() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.bonds) > 0
}

// Present reports whether the identity has an endpoint or a stream.
func (l *Link) Present() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.bonds)+len(l.streams) > 0
}

// Attend adds a stream that is not an endpoint, until leave is called. A stream
// beyond the limit is not counted.
func (l *Link) Attend(c Connection, limit int) (leave func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.streams) >= limit {
		return func() {}
	}
	mine := &c
	l.streams = append(l.streams, mine)
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.streams = slices.DeleteFunc(l.streams, func(other *Connection) bool { return other == mine })
	}
}

// Clear removes every endpoint.
func (l *Link) Clear() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.bonds = nil
}

// Bind adds an endpoint, in place of the one with the same reader if there is one.
// It returns nil if there are as many others as the limit allows.
func (l *Link) Bind(at Endpoint, a Attachment, r *Replay, since time.Time, limit int) *Bond {
	b := &Bond{Attachment: a, Endpoint: at, replay: r, since: since}
	l.mu.Lock()
	defer l.mu.Unlock()
	i := slices.IndexFunc(l.bonds, func(old *Bond) bool { return old.Reader == a.Reader })
	switch {
	case i >= 0:
		l.bonds = slices.Clone(l.bonds)
		l.bonds[i] = b
	case len(l.bonds) >= limit:
		return nil
	default:
		l.bonds = append(slices.Clip(l.bonds), b)
	}
	return b
}

// Unbind removes the bonds to an endpoint.
func (l *Link) Unbind(at Endpoint) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.bonds = slices.DeleteFunc(slices.Clone(l.bonds), func(b *Bond) bool { return b.Endpoint == at })
}

// Connections returns the endpoints and streams at which the identity reads.
func (l *Link) Connections() (list []Connection) {
	l.mu.Lock()
	bonds := l.bonds
	for _, c := range l.streams {
		list = append(list, *c)
	}
	l.mu.Unlock()
	for _, b := range bonds {
		c := Connection{Since: b.since.UTC()}
		if d, ok := b.Endpoint.(Described); ok {
			c.Dialect, c.Address = d.Describe()
		}
		list = append(list, c)
	}
	return list
}

// GoLive ends a replay: it delivers what arrived in the meantime, except what the
// replay already sent.
func (l *Link) GoLive(b *Bond, r *Replay) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if b.replay != r || !slices.Contains(l.bonds, b) {
		return nil // bound again, or cut off
	}
	b.replay = nil
	for _, n := range r.kept {
		if n.Envelope.Seq <= r.UpTo[n.Channel.ID] {
			continue
		}
		if err := b.Endpoint.Deliver(n); err != nil {
			return err
		}
	}
	return nil
}

// Started is a replay to one endpoint that has begun.
type Started struct {
	*Bond
	*Replay
}

// StartReplays starts to hold back what arrives at every endpoint. It starts no
// replay if one of the endpoints already has one.
func (l *Link) StartReplays(limit int) (started []Started, connected bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if slices.ContainsFunc(l.bonds, func(b *Bond) bool { return b.replay != nil }) {
		return nil, true
	}
	for _, b := range l.bonds {
		b.replay = NewReplay(limit)
		started = append(started, Started{b, b.replay})
	}
	return started, len(started) > 0
}

// Elsewhere reports whether an identity reads at an endpoint other than this one.
func (l *Link) Elsewhere(endpoint string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.bonds) > 0 && !slices.ContainsFunc(l.bonds, func(b *Bond) bool { return b.Endpoint.ID() == endpoint })
}

// Unnamed returns the endpoint of the reader without a name, if there is one.
func (l *Link) Unnamed() (endpointID string, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, b := range l.bonds {
		if b.Reader == "" {
			return b.Endpoint.ID(), true
		}
	}
	return "", false
}

// maxReader bounds the name of a reader, which is part of its cursors' names.
const maxReader = 64

// CheckName returns an error if a name cannot be part of a cursor's name.
func CheckName(name string) error {
	if len(name) > maxReader {
		return fault.New(fault.Invalid, "the reader's name has %d bytes; at most %d are accepted", len(name), maxReader)
	}
	for _, c := range []byte(name) {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' && c != '_' && c != '.' {
			return fault.New(fault.Invalid, "%q is not the name of a reader: lower-case letters, digits, '-', '_' and '.' are accepted", name)
		}
	}
	return nil
}
