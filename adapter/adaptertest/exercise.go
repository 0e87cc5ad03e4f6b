package adaptertest

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/envelope"
)

// Subject is an adapter under exercise.
type Subject struct {
	Adapter channel.Adapter
	// Metadata makes a channel that the adapter accepts.
	Metadata func(*rapid.T) *channel.Metadata
	// Payload makes event data that the adapter reads; nil: all events are texts.
	Payload func(t *rapid.T, eventType string, agents []string) string
	// Own lists the envelope types of an adapter whose channels hold only its own
	// dialect's envelopes and are followed, not delivered. It refuses other types, and
	// only members are notified and may read. Nil: the adapter is not of this kind.
	Own []string
	// Ext makes the ext of an envelope; nil: envelopes have none.
	Ext func(t *rapid.T, agents []string) []byte
}

// Exercise checks the laws that every adapter keeps: folds are pure, deterministic and
// total, states survive their codec, and an envelope of a type that the adapter does
// not know is accepted and changes nothing.
func Exercise(t *testing.T, s Subject) {
	t.Helper()
	laws := map[string]func(*rapid.T){
		"a fold changes none of its arguments":    s.pure,
		"two folds of one log are equal":          s.deterministic,
		"any envelope folds":                      s.total,
		"a state survives its codec":              s.roundTrip,
		"any log reads as items, always the same": s.items,
		"lifecycle, task and custom types pass":   s.bystander,
		"the audience says who is told and reads": s.audience,
	}
	if s.Own != nil {
		delete(laws, "lifecycle, task and custom types pass")
		delete(laws, "the audience says who is told and reads")
		laws["other types are refused and change nothing"] = s.foreign
		laws["members alone are notified and read"] = s.followed
	}
	for name, law := range laws {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, law)
		})
	}
}

func (s Subject) open(t *rapid.T) *Play {
	p, err := Open(s.Adapter, s.Metadata(t))
	if err != nil {
		t.Fatalf("refused: %v", err)
	}
	return p
}

var eventTypes = []string{
	envelope.TypeText, envelope.TypeText, envelope.TypePacket, envelope.TypePacket, envelope.TypeContextSet,
	envelope.TypeInvite, envelope.TypeInviteAck, envelope.TypeOpened, envelope.TypeClosed, envelope.TypeExpired,
	envelope.TypeTaskStarted, envelope.TypeTaskCompleted, envelope.TypeExpectationViolated, "app.custom", "",
}

func (s Subject) agents(m *channel.Metadata) []string { return append(m.IDs(), "stranger") }

func (s Subject) draw(t *rapid.T, m *channel.Metadata) *envelope.Envelope {
	agents := s.agents(m)
	types := eventTypes
	if s.Own != nil {
		types = append(slices.Clone(s.Own), "app.custom")
	}
	e := Envelope(rapid.SampledFrom(agents).Draw(t, "sender"), rapid.SampledFrom(types).Draw(t, "type"), "")
	if s.Ext != nil {
		e.Ext = s.Ext(t, agents)
	}
	e.ID = rapid.StringMatching(`[0-9a-f]{8}`).Draw(t, "id")
	if rapid.Bool().Draw(t, "addressed") {
		e.Audience = rapid.SliceOfN(rapid.SampledFrom(agents), 0, 3).Draw(t, "audience")
	}
	e.Data = []byte(s.payload(t, e.Type, agents))
	return e
}

func (s Subject) payload(t *rapid.T, eventType string, agents []string) string {
	odd := []string{`{}`, `{"text":""}`, `{"text":5}`, `{"text":"x","text":"y"}`, `[]`, `null`, ``, `{`, `{"routing":[]}`, `{"set":7}`}
	if s.Payload == nil || rapid.IntRange(0, 4).Draw(t, "odd") == 0 {
		return rapid.SampledFrom(odd).Draw(t, "data")
	}
	return s.Payload(t, eventType, agents)
}

func (s Subject) log(t *rapid.T, m *channel.Metadata) []*envelope.Envelope {
	log := make([]*envelope.Envelope, rapid.IntRange(0, 12).Draw(t, "length"))
	for i := range log {
		log[i] = s.draw(t, m)
	}
	return log
}

func (s Subject) pure(t *rapid.T) {
	p := s.open(t)
	for _, e := range s.log(t, p.Meta) {
		meta, sent, before := p.Meta.Clone(), e.Clone(), p.JSON()
		_ = s.Adapter.ValidateSend(p.Meta, p.State, e)
		next := s.Adapter.Fold(p.State, e)
		s.Adapter.OnAccepted(p.Meta, next, e)
		s.Adapter.Expected(p.Meta, next)
		s.Adapter.Recipients(p.Meta, next, p.Meta.Members(), e)
		if diff := cmp.Diff(before, p.JSON()); diff != "" {
			t.Fatalf("the state was changed in place:\n%s", diff)
		}
		if diff := cmp.Diff(sent, e) + cmp.Diff(meta, p.Meta); diff != "" {
			t.Fatalf("an argument was changed:\n%s", diff)
		}
		p.State = next
	}
}

func (s Subject) deterministic(t *rapid.T) {
	m := s.Metadata(t)
	log := s.log(t, m)
	one, err := Replay(s.Adapter, m, log)
	if err != nil {
		t.Fatal(err)
	}
	two, err := Replay(s.Adapter, m.Clone(), log)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(StateJSON(s.Adapter, one), StateJSON(s.Adapter, two)); diff != "" {
		t.Fatalf("two folds differ:\n%s", diff)
	}
}

func (s Subject) total(t *rapid.T) {
	p := s.open(t)
	e := s.draw(t, p.Meta)
	e.Data = rapid.SliceOf(rapid.Byte()).Draw(t, "bytes")
	next := s.Adapter.Fold(p.State, e)
	if _, err := s.Adapter.Codec().Encode(next); err != nil {
		t.Fatalf("a fold led to what cannot be written: %v", err)
	}
	// A value that is not a state of the adapter is returned unchanged.
	if got := s.Adapter.Fold(nil, e); got != nil {
		t.Fatalf("no state folds to %v", got)
	}
	if err := s.Adapter.ValidateSend(p.Meta, nil, Envelope(e.Sender, "app.custom", `{}`)); err != nil && s.Own == nil {
		t.Fatalf("a custom type was refused: %v", err)
	}
}

func (s Subject) roundTrip(t *rapid.T) {
	p := s.open(t)
	codec := s.Adapter.Codec()
	var err error
	if p.State, err = Replay(s.Adapter, p.Meta, s.log(t, p.Meta)); err != nil {
		t.Fatal(err)
	}
	decoded, err := codec.Decode([]byte(p.JSON()))
	if err != nil {
		t.Fatalf("what was written cannot be read: %v\n%s", err, p.JSON())
	}
	if diff := cmp.Diff(p.JSON(), StateJSON(s.Adapter, decoded)); diff != "" {
		t.Fatalf("written and read again differs:\n%s", diff)
	}
	// A decoded state behaves as the encoded one.
	for _, e := range s.log(t, p.Meta) {
		p.State, decoded = s.Adapter.Fold(p.State, e), s.Adapter.Fold(decoded, e)
		if diff := cmp.Diff(p.JSON(), StateJSON(s.Adapter, decoded)); diff != "" {
			t.Fatalf("folds apart after reading:\n%s", diff)
		}
		if diff := cmp.Diff(s.Adapter.OnAccepted(p.Meta, p.State, e), s.Adapter.OnAccepted(p.Meta, decoded, e)); diff != "" {
			t.Fatalf("acts otherwise after reading:\n%s", diff)
		}
	}
}

func (s Subject) bystander(t *rapid.T) {
	p := s.open(t)
	var err error
	if p.State, err = Replay(s.Adapter, p.Meta, s.log(t, p.Meta)); err != nil {
		t.Fatal(err)
	}
	e := s.draw(t, p.Meta)
	switch e.Type {
	case envelope.TypeText, envelope.TypePacket, envelope.TypeContextSet:
		e.Type = "app.custom"
	}
	if err := s.Adapter.ValidateSend(p.Meta, p.State, e); err != nil {
		t.Fatalf("%q of '%s' was refused: %v", e.Type, e.Sender, err)
	}
	if next := s.Adapter.Fold(p.State, e); next != p.State {
		t.Fatalf("%q made a new state: %s", e.Type, StateJSON(s.Adapter, next))
	}
	if diff := cmp.Diff(channel.Effects{}, s.Adapter.OnAccepted(p.Meta, p.State, e)); diff != "" {
		t.Fatalf("%q had effects:\n%s", e.Type, diff)
	}
}

func (s Subject) audience(t *rapid.T) {
	p := s.open(t)
	e := s.draw(t, p.Meta)
	want := e.Audience
	if want == nil {
		want = p.Meta.Others(e.Sender)
	}
	got := s.Adapter.Recipients(p.Meta, p.State, p.Meta.Members(), e)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("recipients differ:\n%s", diff)
	}
	for _, agent := range s.agents(p.Meta) {
		if got, want := s.Adapter.Visible(p.Meta, p.State, p.Meta.Members(), e, agent), e.VisibleTo(agent); got != want {
			t.Fatalf("visible to '%s': %v, want %v", agent, got, want)
		}
	}
}

func (s Subject) foreign(t *rapid.T) {
	p := s.open(t)
	var err error
	if p.State, err = Replay(s.Adapter, p.Meta, s.log(t, p.Meta)); err != nil {
		t.Fatal(err)
	}
	e := s.draw(t, p.Meta)
	e.Type = rapid.SampledFrom(eventTypes).Draw(t, "type")
	if err := s.Adapter.ValidateSend(p.Meta, p.State, e); err == nil {
		t.Fatalf("%q of '%s' was accepted", e.Type, e.Sender)
	}
	if next := s.Adapter.Fold(p.State, e); next != p.State {
		t.Fatalf("%q made a new state: %s", e.Type, StateJSON(s.Adapter, next))
	}
	if diff := cmp.Diff(channel.Effects{}, s.Adapter.OnAccepted(p.Meta, p.State, e)); diff != "" {
		t.Fatalf("%q had effects:\n%s", e.Type, diff)
	}
}

func (s Subject) followed(t *rapid.T) {
	p := s.open(t)
	for _, e := range s.log(t, p.Meta) {
		p.State = s.Adapter.Fold(p.State, e)
		in := p.Meta.Members()
		if folder, ok := s.Adapter.(channel.MemberFolder); ok {
			in = folder.Members(p.Meta, p.State)
		}
		for _, agent := range s.Adapter.Recipients(p.Meta, p.State, in, e) {
			if !in.Has(agent) {
				t.Fatalf("'%s' is notified, and is no member", agent)
			}
		}
		for _, agent := range s.agents(p.Meta) {
			if got, want := s.Adapter.Visible(p.Meta, p.State, in, e, agent), in.Has(agent); got != want {
				t.Fatalf("visible to '%s': %v, want %v", agent, got, want)
			}
		}
	}
}
