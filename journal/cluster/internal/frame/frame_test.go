package frame_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-hub/parley/journal/cluster/internal/frame"
)

func TestEncodeThenDecodeIsIdentity(t *testing.T) {
	t.Parallel()
	body := []byte("body")
	data, chain := frame.Encode(frame.Chain{1, 2}, frame.Group, 7, body)
	m, err := frame.Decode(data)
	if diff := cmp.Diff(frame.Message{Kind: frame.Group, Term: 7, Chain: chain, Body: body}, m); err != nil || diff != "" {
		t.Fatal(err, diff)
	}
	if (frame.Chain{1, 2}).Next(frame.Group, 7, body) != chain {
		t.Error("the chain is not that of what came before")
	}
	for _, other := range []frame.Chain{
		frame.Chain{1, 3}.Next(frame.Group, 7, body), frame.Chain{1, 2}.Next(frame.Part, 7, body),
		frame.Chain{1, 2}.Next(frame.Group, 8, body), frame.Chain{1, 2}.Next(frame.Group, 7, []byte("bodY")),
	} {
		if other == chain {
			t.Error("another message has the same chain")
		}
	}
	for i := range data {
		bad := bytes.Clone(data)
		bad[i] ^= 1
		if _, err := frame.Decode(bad); !errors.Is(err, frame.ErrForeign) {
			t.Errorf("a flipped bit in byte %d: %v", i, err)
		}
		if _, err := frame.Decode(data[:i]); !errors.Is(err, frame.ErrForeign) {
			t.Errorf("cut at %d: %v", i, err)
		}
	}
}

func TestBodies(t *testing.T) {
	t.Parallel()
	f := frame.FenceBody{Epoch: 3, Format: 1, Base: 99, Nonce: [16]byte{5}, Node: "a"}
	if got, err := frame.DecodeFence(f.Encode()); err != nil || got != f {
		t.Error(got, err)
	}
	for _, g := range []frame.GroupBody{
		{First: 1, Count: 1, Batch: []byte("batch")},
		{First: 300, Count: 2, Hints: [][]byte{[]byte("h"), {}}, Batch: []byte("batch")},
	} {
		got, err := frame.DecodeGroup(g.Encode())
		if diff := cmp.Diff(g, got); err != nil || diff != "" {
			t.Error(err, diff)
		}
	}
	var parts frame.Parts
	for i, piece := range []string{"one ", "two ", "three"} {
		p, err := frame.DecodePart((&frame.PartBody{Index: uint64(i + 1), Of: 3, Piece: []byte(piece)}).Encode())
		if err != nil {
			t.Fatal(err)
		}
		body, err := parts.Add(p)
		if err != nil || (i == 2) != (body != nil) || i == 2 && string(body) != "one two three" {
			t.Error(i, string(body), err)
		}
	}
	if _, err := parts.Add(frame.PartBody{Index: 2, Of: 2, Piece: []byte("x")}); err == nil {
		t.Error("a part was taken without those before it")
	}
}

// FuzzDecode: any input is decoded or refused, does not allocate more than its size,
// and a decoded message is encoded to the same bytes.
func FuzzDecode(f *testing.F) {
	for kind, body := range map[frame.Kind][]byte{
		frame.Fence:   (&frame.FenceBody{Epoch: 1, Format: 1, Node: "a"}).Encode(),
		frame.Group:   (&frame.GroupBody{First: 1, Count: 2, Hints: [][]byte{{1}, {2}}, Batch: make([]byte, 20)}).Encode(),
		frame.Part:    (&frame.PartBody{Index: 1, Of: 2, Piece: []byte("x")}).Encode(),
		frame.Barrier: nil,
	} {
		data, _ := frame.Encode(frame.Chain{}, kind, 1, body)
		f.Add(data, body)
	}
	f.Fuzz(func(t *testing.T, data, body []byte) {
		if m, err := frame.Decode(data); err == nil && len(m.Body) > len(data) {
			t.Fatal("a body from nowhere")
		}
		if b, err := frame.DecodeFence(body); err == nil && !bytes.Equal(b.Encode(), body) {
			t.Fatal("a fence is encoded to something else")
		}
		if g, err := frame.DecodeGroup(body); err == nil && (len(g.Hints) > len(body) || len(g.Batch) > len(body)) {
			t.Fatal("a group from nowhere")
		}
		if p, err := frame.DecodePart(body); err == nil {
			var parts frame.Parts
			_, _ = parts.Add(p)
		}
	})
}
