package stream

import (
	"bufio"

	"github.com/parley-hub/parley/message"
)

// writer writes values as lines, or as an array with one value a line. What
// fails to be written in full is not written at all.
type writer struct {
	w       *bufio.Writer
	array   bool
	count   int
	scratch []byte
}

func (o *writer) write(e message.Envelope, appendTo func(message.Envelope, []byte) ([]byte, error)) error {
	o.scratch = o.scratch[:0]
	if o.array {
		o.scratch = append(o.scratch, o.separator()...)
	}
	var err error
	if o.scratch, err = appendTo(e, o.scratch); err != nil {
		return err
	}
	if !o.array {
		o.scratch = append(o.scratch, '\n')
	}
	o.count++
	_, err = o.w.Write(o.scratch)
	if cap(o.scratch) > keepScratch {
		o.scratch = nil
	}
	return err
}

// keepScratch is the largest buffer that is kept for the next value.
const keepScratch = 1 << 20

func (o *writer) separator() string {
	if o.count == 0 {
		return "[\n"
	}
	return ",\n"
}

// finish ends an array, if all of it was written, and flushes.
func (o *writer) finish(complete bool) error {
	if o.array && complete {
		end := "\n]\n"
		if o.count == 0 {
			end = "[]\n"
		}
		if _, err := o.w.WriteString(end); err != nil {
			return err
		}
	}
	return o.w.Flush()
}
