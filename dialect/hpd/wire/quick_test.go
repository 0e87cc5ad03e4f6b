package wire_test

import (
	"testing"

	"github.com/go-json-experiment/json"
	"pgregory.net/rapid"

	"github.com/parley-hub/parley/dialect/hpd/wire"
)

// The quick form of a delta equals the general one.
func TestQuickDeltas(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		d := wire.TextDelta{Text: rapid.String().Draw(t, "text"), MessageID: rapid.String().Draw(t, "id")}
		want, err := json.Marshal(d, json.Deterministic(true))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := (&wire.Event{Payload: d}).Data(); err != nil || string(got) != string(want) {
			t.Fatalf("%s (%v), not %s", got, err, want)
		}
	})
	for _, bad := range []wire.TextDelta{{Text: "\xff"}, {MessageID: "\xff"}} {
		if got, err := (&wire.Event{Payload: bad}).Data(); err == nil {
			t.Errorf("text that is not UTF-8 is written as %s", got)
		}
	}
}
