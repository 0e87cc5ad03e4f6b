package datadir

import (
	"bytes"
	"testing"

	"github.com/parley-hub/parley/journal/disk/internal/walchunk"
)

// FuzzDecodeFiles passes any input to the decoders of files: they return an error for
// invalid input, and never panic or allocate more than the input's size.
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
