package adaptertest

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/envelope"
)

// Folder is an adapter whose envelopes a test draws itself.
type Folder struct {
	Adapter  channel.Adapter
	Metadata func() *channel.Metadata
	Draw     func(*rapid.T) *envelope.Envelope
}

// ExerciseFolds checks the laws of folds for adapters of dialects other than AG2:
// they are pure, deterministic and total, and a decoded state folds as the encoded
// one. Envelopes of other dialects are refused and change nothing.
func ExerciseFolds(t *testing.T, f Folder) {
	t.Helper()
	for name, law := range map[string]func(*rapid.T){
		"a fold changes none of its arguments": f.pure,
		"two folds of one log are equal":       f.deterministic,
		"any envelope folds":                   f.total,
		"a state survives its codec":           f.roundTrip,
		"other types are refused":              f.foreign,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, law)
		})
	}
}

func (f Folder) open(t *rapid.T) *Play {
	p, err := Open(f.Adapter, f.Metadata())
	if err != nil {
		t.Fatalf("refused: %v", err)
	}
	return p
}

func (f Folder) log(t *rapid.T) []*envelope.Envelope {
	log := make([]*envelope.Envelope, rapid.IntRange(0, 15).Draw(t, "length"))
	for i := range log {
		log[i] = f.Draw(t)
		log[i].Seq = uint64(i + 1)
	}
	return log
}

func (f Folder) pure(t *rapid.T) {
	p := f.open(t)
	for _, e := range f.log(t) {
		meta, sent, before := p.Meta.Clone(), e.Clone(), p.JSON()
		_ = f.Adapter.ValidateSend(p.Meta, p.State, e)
		next := f.Adapter.Fold(p.State, e)
		f.Adapter.OnAccepted(p.Meta, next, e)
		f.Adapter.Recipients(p.Meta, next, p.Meta.Members(), e)
		if diff := cmp.Diff(before, p.JSON()) + cmp.Diff(sent, e) + cmp.Diff(meta, p.Meta); diff != "" {
			t.Fatalf("an argument was changed:\n%s", diff)
		}
		p.State = next
	}
}

func (f Folder) deterministic(t *rapid.T) {
	log := f.log(t)
	one, err := Replay(f.Adapter, f.Metadata(), log)
	if err != nil {
		t.Fatal(err)
	}
	two, err := Replay(f.Adapter, f.Metadata(), log)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(StateJSON(f.Adapter, one), StateJSON(f.Adapter, two)); diff != "" {
		t.Fatalf("two folds differ:\n%s", diff)
	}
}

func (f Folder) total(t *rapid.T) {
	p := f.open(t)
	e := f.Draw(t)
	switch rapid.IntRange(0, 2).Draw(t, "spoiled") {
	case 0:
		e.Data = rapid.SliceOf(rapid.Byte()).Draw(t, "data")
	case 1:
		e.Ext = rapid.SliceOf(rapid.Byte()).Draw(t, "ext")
	case 2:
		e.Key, e.Ext = "", nil
	}
	next := f.Adapter.Fold(p.State, e)
	f.Adapter.OnAccepted(p.Meta, next, e)
	if _, err := f.Adapter.Codec().Encode(next); err != nil {
		t.Fatalf("a fold led to what cannot be written: %v", err)
	}
	if got := f.Adapter.Fold(nil, e); got != nil {
		t.Fatalf("no state folds to %v", got)
	}
	_ = f.Adapter.ValidateSend(p.Meta, nil, e)
}

func (f Folder) roundTrip(t *rapid.T) {
	p := f.open(t)
	for _, e := range f.log(t) {
		p.State = f.Adapter.Fold(p.State, e)
	}
	codec := f.Adapter.Codec()
	decoded, err := codec.Decode([]byte(p.JSON()))
	if err != nil {
		t.Fatalf("what was written cannot be read: %v\n%s", err, p.JSON())
	}
	if diff := cmp.Diff(p.JSON(), StateJSON(f.Adapter, decoded)); diff != "" {
		t.Fatalf("written and read again differs:\n%s", diff)
	}
	for _, e := range f.log(t) {
		if diff := cmp.Diff(f.Adapter.ValidateSend(p.Meta, p.State, e) == nil, f.Adapter.ValidateSend(p.Meta, decoded, e) == nil); diff != "" {
			t.Fatalf("judges otherwise after reading:\n%s", diff)
		}
		p.State, decoded = f.Adapter.Fold(p.State, e), f.Adapter.Fold(decoded, e)
		if diff := cmp.Diff(p.JSON(), StateJSON(f.Adapter, decoded)); diff != "" {
			t.Fatalf("folds apart after reading:\n%s", diff)
		}
		if diff := cmp.Diff(f.Adapter.OnAccepted(p.Meta, p.State, e), f.Adapter.OnAccepted(p.Meta, decoded, e)); diff != "" {
			t.Fatalf("acts otherwise after reading:\n%s", diff)
		}
	}
}

func (f Folder) foreign(t *rapid.T) {
	p := f.open(t)
	for _, e := range f.log(t) {
		p.State = f.Adapter.Fold(p.State, e)
	}
	e := f.Draw(t)
	e.Type = rapid.SampledFrom(eventTypes).Draw(t, "type")
	if err := f.Adapter.ValidateSend(p.Meta, p.State, e); err == nil {
		t.Fatalf("%q was accepted", e.Type)
	}
	if next := f.Adapter.Fold(p.State, e); next != p.State {
		t.Fatalf("%q made a new state", e.Type)
	}
	if diff := cmp.Diff(channel.Effects{}, f.Adapter.OnAccepted(p.Meta, p.State, e)); diff != "" {
		t.Fatalf("%q had effects:\n%s", e.Type, diff)
	}
}
