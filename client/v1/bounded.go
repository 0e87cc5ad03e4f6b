package v1

import (
	"fmt"
	"io"
)

// bounded reads at most left bytes of an answer. A longer one is an error, not
// a shorter answer.
type bounded struct {
	r    io.Reader
	left int
}

var errTooLong = fmt.Errorf("its answer is over %d MiB, which is what is read at once; ask for less", MaxAnswer>>20)

func (b *bounded) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, errTooLong
	}
	n, err := b.r.Read(p[:min(len(p), b.left)])
	b.left -= n
	return n, err
}
