package work

import (
	"slices"

	"github.com/go-json-experiment/json"

	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/internal/jsonbuf"
)

// Dialect is the dialect of these channels.
const Dialect = "agh"

// Knobs are what a conversation is opened with.
type Knobs struct {
	Workspace string   `json:"workspace_id"`
	Channel   string   `json:"channel"`
	Thread    string   `json:"thread_id,omitempty"`
	Direct    string   `json:"direct_id,omitempty"`
	Peers     []string `json:"peers,omitempty"` // the two of a direct room, sorted
}

// AppendJSON writes the knobs; every message carries them.
func (k *Knobs) AppendJSON(buf []byte) ([]byte, error) {
	b := &jsonbuf.Buffer{Bytes: slices.Grow(buf, 128+len(k.Workspace)+len(k.Channel)+len(k.Thread)+len(k.Direct))}
	b.Open('{').Key("workspace_id").String(k.Workspace).Key("channel").String(k.Channel)
	if k.Thread != "" {
		b.Key("thread_id").String(k.Thread)
	}
	if k.Direct != "" {
		b.Key("direct_id").String(k.Direct)
	}
	if len(k.Peers) > 0 {
		b.Key("peers").Strings(k.Peers)
	}
	return b.Close('}').Result()
}

// ReadKnobs reads the knobs and checks those that every conversation needs.
func ReadKnobs(m *channel.Metadata) (Knobs, error) {
	var k Knobs
	if err := json.Unmarshal(m.Knobs, &k); err != nil {
		return k, fault.New(fault.Invalid, "the knobs of a %s are a JSON object: %v", m.Manifest.Type, err)
	}
	if k.Workspace == "" || k.Channel == "" {
		return k, fault.New(fault.Invalid, "a %s has the knobs workspace_id and channel", m.Manifest.Type)
	}
	return k, nil
}

// RoomType is the type of the room that a conversation belongs to.
const RoomType = "room"

// ChannelName returns the channel that a conversation belongs to, which is the name of
// its room; empty: its knobs cannot be read.
func ChannelName(m *channel.Metadata) string {
	k, err := ReadKnobs(m)
	if err != nil {
		return ""
	}
	return k.Channel
}

// RefuseType refuses a type that is not part of an AGH conversation.
func RefuseType(adapter, eventType string) error {
	return fault.New(fault.Protocol, "a %s takes AGH's own envelopes only, not %q", adapter, eventType)
}

// Validate reads a record and judges it, as thread and direct room both do.
func Validate(adapter string, s channel.State, e *envelope.Envelope, maxWork int) error {
	m, ok := readRules(e)
	if !ok {
		return RefuseType(adapter, e.Type)
	}
	c, ok := s.(*Conversation)
	if !ok {
		return fault.New(fault.Internal, "%T is not the state of a %s", s, adapter)
	}
	return c.Check(&m, maxWork)
}

// Fold folds a record into a conversation; other records are ignored.
func Fold(s channel.State, e *envelope.Envelope) channel.State {
	c, ok := s.(*Conversation)
	if !ok || c == nil {
		return s
	}
	m, ok := Read(e)
	if !ok {
		return s
	}
	return c.FoldRecord(e, &m)
}

// FoldRecord folds a record that was read.
func (c *Conversation) FoldRecord(e *envelope.Envelope, m *Message) *Conversation {
	next := c.Fold(m)
	next.newest = &head{e.ID, *m}
	next.newest.Preview = ""
	return next
}

// OnAccepted returns what follows from a folded record.
func OnAccepted(s channel.State, e *envelope.Envelope, peers []string) channel.Effects {
	c, ok := s.(*Conversation)
	if !ok || c == nil {
		return channel.Effects{}
	}
	m, ok := c.readNewest(e)
	if !ok {
		m, ok = Read(e)
	}
	if !ok {
		return channel.Effects{}
	}
	effects, err := c.Effects(&m, e.ID, e.Seq, peers)
	if err != nil {
		return channel.Effects{} // strings that were read as JSON can be written
	}
	if origin, ok := firstOrigin(e); ok && m.Opens() {
		effects.Claims = append(effects.Claims, c.Place.originClaim(origin, &m))
		effects.Index = append(effects.Index, channel.IndexEntry{Key: c.Place.OriginKey(origin, m.From)})
	}
	return effects
}
