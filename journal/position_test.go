package journal_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/parley-hub/parley/journal"
)

func TestPositionsHaveATextForm(t *testing.T) {
	t.Parallel()
	equalText(t, journal.Position{Epoch: 1, Incarnation: 42, Seq: 7}.String(), "1.42.7")
	equalText(t, journal.ShardPosition{Epoch: 1, Offset: 42}.String(), "1.42")
	equalText(t, journal.StorePosition{{Epoch: 1, Offset: 42}, {Epoch: 2, Offset: 57}}.String(), "1.42,2.57")
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Uint64()
		type all struct {
			P journal.Position
			S journal.ShardPosition
			W journal.StorePosition
		}
		in := all{
			P: journal.Position{Epoch: n.Draw(t, "e"), Incarnation: n.Draw(t, "i"), Seq: n.Draw(t, "s")},
			S: journal.ShardPosition{Epoch: n.Draw(t, "e"), Offset: n.Draw(t, "o")},
		}
		in.W = journal.StorePosition{in.S, {Epoch: n.Draw(t, "e"), Offset: n.Draw(t, "o")}}
		text, err := json.Marshal(in)
		if err != nil {
			t.Fatal(err)
		}
		var out all
		if err := json.Unmarshal(text, &out); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(in, out); diff != "" {
			t.Fatalf("%s (-want +got):\n%s", text, diff)
		}
	})
}

func TestOtherTextIsNoPosition(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"", "1", "1.2", "1.2.3.4", "1.2.x", "1.2.-3", "1..3", "01.2.3", "+1.2.3", "1.2.3 ", "1.2.18446744073709551616",
	} {
		if p, err := journal.ParsePosition(text); err == nil {
			t.Errorf("%q was read as position %v", text, p)
		}
	}
	for _, text := range []string{"", "1", "1.2.3", "1.02"} {
		if p, err := journal.ParseShardPosition(text); err == nil {
			t.Errorf("%q was read as shard position %v", text, p)
		}
	}
	for _, text := range []string{",", "1.2,", "1.2;1.3", "1.2, 1.3"} {
		if p, err := journal.ParseStorePosition(text); err == nil {
			t.Errorf("%q was read as wide position %v", text, p)
		}
	}
}

func TestTheZeroPositionIsBeforeEverything(t *testing.T) {
	t.Parallel()
	if !(journal.Position{}).IsZero() || (journal.Position{Epoch: 1}).IsZero() {
		t.Error("only the zero position is zero")
	}
	if !(journal.ShardPosition{}).IsZero() || (journal.ShardPosition{Offset: 1}).IsZero() {
		t.Error("only the zero shard position is zero")
	}
}

func equalText(t *testing.T, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
