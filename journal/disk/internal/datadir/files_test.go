package datadir

import (
	"bytes"
	"testing"

	"github.com/parley-hub/parley/journal/disk/internal/walchunk"
)

// FuzzDecodeFiles gives the decoders of files anything: they answer with an
// error, and never panic or take more memory than they were given.
func FuzzDecodeFiles(f *testing.F) {
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01})
	f.Add([]byte(sealTitle + "\nepoch 1\noffset 2\nsum 00000000\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		_, _ = decodeSeal(b)
		_, _ = decodeMark(b)
		for _, number := range []uint32{0, 7} {
			end, err := walchunk.Read(bytes.NewReader(b), number, func([]byte) error { return nil })
			if err != nil || end.Stop > int64(len(b)) || end.Beyond > int64(len(b)) {
				t.Fatalf("%+v, %v", end, err)
			}
		}
	})
}
