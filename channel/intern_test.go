package channel_test

import (
	"fmt"
	"strings"
	"testing"
	"unsafe"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-hub/parley/channel"
)

// shares reports whether two equal texts from different places are returned as
// one.
func shares(in *channel.Interner, text string) bool {
	one, two := in.Name(strings.Clone(text)), in.Name(strings.Clone(text))
	return one == text && two == text && unsafe.StringData(one) == unsafe.StringData(two)
}

func TestInternedNames(t *testing.T) {
	t.Parallel()
	for _, limit := range []int{0, -1} {
		if !shares(channel.NewInterner(limit), "agt-a") {
			t.Errorf("a limit of %d shares nothing", limit)
		}
	}
	in := channel.NewInterner(2)
	for i, want := range []bool{true, true, false} {
		if got := shares(in, fmt.Sprint("agt-", i)); got != want {
			t.Errorf("text %d of at most two is shared: %v", i, got)
		}
	}
	if !shares(in, "agt-0") {
		t.Error("a full interner forgot what it had")
	}
	long := channel.NewInterner(0)
	if !shares(long, strings.Repeat("x", 128)) || shares(long, strings.Repeat("x", 129)) {
		t.Error("texts are shared up to 128 bytes, and not beyond")
	}
	if shares(nil, "agt-a") {
		t.Error("no interner shares")
	}
	// The empty text takes no place.
	one := channel.NewInterner(1)
	if one.Name("") != "" || !shares(one, "agt-a") {
		t.Error("the empty text took the only place")
	}
}

func TestInternedManifests(t *testing.T) {
	t.Parallel()
	in := channel.NewInterner(2)
	one, err := channel.DecodeMetadata([]byte(sampleJSON), in)
	if err != nil {
		t.Fatal(err)
	}
	two, err := channel.DecodeMetadata([]byte(sampleJSON), in)
	if err != nil {
		t.Fatal(err)
	}
	if one.Manifest != two.Manifest {
		t.Error("two channels of one manifest hold two copies")
	}
	same, err := in.Manifest(sample().Manifest)
	if err != nil || same != one.Manifest {
		t.Errorf("an equal manifest is not the shared one: %v", err)
	}
	again, err := in.Manifest(sample().Manifest)
	if err != nil || again != same {
		t.Errorf("a manifest that is asked for again is not the shared one: %v", err)
	}
	other := *sample().Manifest
	other.Participants.Max = new(99)
	if changed, err := in.Manifest(&other); err != nil || changed == same || *changed.Participants.Max != 99 {
		t.Errorf("another manifest of the same type and version gives %+v, %v", changed, err)
	}
	if diff := cmp.Diff(sample(), two); diff != "" {
		t.Error(diff)
	}
	if unsafe.StringData(two.Creator) != unsafe.StringData(two.Participants[0].Agent) {
		t.Error("creator and first participant hold two copies of one id")
	}
	bad := &channel.Manifest{Type: "x", KnobsSchema: []byte(`[]`)}
	if _, err := in.Manifest(bad); err == nil {
		t.Error("a manifest that is not JSON was shared")
	}
	if _, err := in.Manifest(&channel.Manifest{}); err == nil {
		t.Error("a manifest without a type was shared")
	}
	for i := range 1100 {
		m := &channel.Manifest{Type: fmt.Sprint("type-", i), Version: 1}
		first, err := in.Manifest(m)
		if err != nil {
			t.Fatal(err)
		}
		second, err := in.Manifest(m)
		if err != nil {
			t.Fatal(err)
		}
		if want := i < 1023; want != (first == second) { // one type is there already
			t.Fatalf("manifest %d is shared: %v", i, first == second)
		}
	}
}

func TestInternedKnobs(t *testing.T) {
	t.Parallel()
	shared := func(in *channel.Interner, knobs string) bool {
		one, two := in.Knobs([]byte(knobs)), in.Knobs([]byte(knobs))
		return string(one) == knobs && string(two) == knobs && &one[0] == &two[0]
	}
	in := channel.NewInterner(0)
	if !shared(in, `{"a":1}`) || shared(nil, `{"a":1}`) {
		t.Error("equal knobs are shared by an interner, and only by one")
	}
	if in.Knobs(nil) != nil {
		t.Error("no knobs became some")
	}
	one, err := channel.DecodeMetadata([]byte(sampleJSON), in)
	if err != nil {
		t.Fatal(err)
	}
	two, err := channel.DecodeMetadata([]byte(sampleJSON), in)
	if err != nil {
		t.Fatal(err)
	}
	if &one.Knobs[0] != &two.Knobs[0] {
		t.Error("two channels of equal knobs hold two copies")
	}
	// Four mebibytes are kept, to the byte.
	full := channel.NewInterner(0)
	if !shared(full, `{"x":"`+strings.Repeat("x", 4<<20-8)+`"}`) {
		t.Error("what just fits is not shared")
	}
	if shared(full, `{"a":1}`) {
		t.Error("a full interner keeps more")
	}
}
