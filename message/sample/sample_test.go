package sample_test

import (
	"bytes"
	"testing"

	"github.com/parley-hub/parley/message/sample"
)

func TestLines(t *testing.T) {
	t.Parallel()
	whole := sample.Conversation()
	for size, times := range map[int]int{
		-1: 0, 0: 0, 1: 1, len(whole) - 1: 1, len(whole): 1, len(whole) + 1: 2, 2 * len(whole): 2, 2*len(whole) + 1: 3,
	} {
		if got := sample.Lines(size); !bytes.Equal(got, bytes.Repeat(whole, times)) {
			t.Errorf("%d bytes: got %d, want the conversation's %d %d times", size, len(got), len(whole), times)
		}
	}
}

func TestSamplesAreCopies(t *testing.T) {
	t.Parallel()
	for name, give := range map[string]func() []byte{"typical": sample.Typical, "conversation": sample.Conversation} {
		first := give()
		want := bytes.Clone(first)
		clear(first)
		if len(want) == 0 || !bytes.Equal(give(), want) {
			t.Errorf("%s: what a caller writes to is shared", name)
		}
	}
}
