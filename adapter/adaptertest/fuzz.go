package adaptertest

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-hub/parley/channel"
)

// FuzzState feeds bytes to a state's codec: every state that it reads can be written,
// and reading that again gives the same state.
func FuzzState(t *testing.T, a channel.Adapter, data []byte) {
	t.Helper()
	codec := a.Codec()
	s, err := codec.Decode(data)
	if err != nil {
		return
	}
	text, err := codec.Encode(s)
	if err != nil {
		t.Fatalf("was read but cannot be written: %v", err)
	}
	again, err := codec.Decode(text)
	if err != nil {
		t.Fatalf("cannot read what it wrote: %v\n%s", err, text)
	}
	if diff := cmp.Diff(string(text), StateJSON(a, again)); diff != "" {
		t.Fatalf("writes differently the second time:\n%s", diff)
	}
	a.Fold(s, Text("a", "b"))
}
