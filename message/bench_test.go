package message_test

import (
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/parley-hub/parley/message"
	"github.com/parley-hub/parley/message/sample"
)

// BenchmarkNormalize is JSON in, canonical JSON out.
func BenchmarkNormalize(b *testing.B) {
	src := sample.Typical()
	b.SetBytes(int64(len(src)))
	b.ReportAllocs()
	var dst []byte
	for b.Loop() {
		e, err := message.NormalizeJSON(src)
		if err != nil {
			b.Fatal(err)
		}
		if dst, err = e.AppendJSON(dst[:0]); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkDecodeEncode is what Normalize is measured against: the same JSON
// decoded and encoded with the same library.
func BenchmarkDecodeEncode(b *testing.B) {
	src := sample.Typical()
	b.SetBytes(int64(len(src)))
	b.ReportAllocs()
	for b.Loop() {
		var v any
		if err := json.Unmarshal(src, &v); err != nil {
			b.Fatal(err)
		}
		if _, err := json.Marshal(v); err != nil {
			b.Fatal(err)
		}
	}
}
