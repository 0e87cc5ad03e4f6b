package bundle

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"iter"

	"github.com/go-json-experiment/json"

	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/fault"
)

// MaxLine is how long a line may be: an envelope of the largest size with room
// for what is written around it.
const MaxLine = 8 << 20

// Part is a channel or a content of a bundle.
type Part struct {
	Channel  Channel // if it is one
	Metadata *channel.Metadata
	Content  *Content // if it is one
}

// Reader reads a bundle. The bundle is known to be complete and unchanged only when
// Next has returned io.EOF: the checksum is the last line.
type Reader struct {
	Manifest Manifest

	in    *bufio.Reader
	hash  hash.Hash
	lines int
	ahead *line // read and not used
	open  bool  // the channel or content of the last Part is not read to its end
	first bool  // the manifest's own channel is next
	left  Manifest
	end   End
}

// NewReader reads the manifest.
func NewReader(r io.Reader) (*Reader, error) {
	b := &Reader{in: bufio.NewReaderSize(r, 64<<10), hash: sha256.New()}
	text, err := b.text()
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(text, &b.Manifest); err != nil || b.Manifest.Version == 0 {
		return nil, fault.New(fault.Invalid, "this is not a bundle: its first line has no parley_bundle; parley export CHANNEL --bundle FILE writes one")
	}
	b.hash.Write(text)
	b.hash.Write([]byte("\n"))
	m := b.Manifest
	if m.Version > Version {
		return nil, fault.New(fault.Invalid, "the bundle has format %d; this version reads up to %d", m.Version, Version)
	}
	if b.first = len(m.Metadata) > 0; b.first == (m.Home != nil) || b.first && (m.Channels != 1 || m.Contents != 0) || m.Channels < 0 || m.Contents < 0 {
		return nil, fault.New(fault.Invalid, "the manifest must have either one channel or a home, and how many channels and contents follow")
	}
	b.left = m
	return b, nil
}

// text reads a line.
func (r *Reader) text() ([]byte, error) {
	var text []byte
	for {
		part, err := r.in.ReadSlice('\n')
		if len(text)+len(part) > MaxLine {
			return nil, fault.New(fault.TooLarge, "line %d has more than %d bytes", r.lines+1, MaxLine)
		}
		text = append(text, part...)
		switch {
		case err == nil:
			r.lines++
			return bytes.TrimSuffix(text, []byte("\n")), nil
		case errors.Is(err, bufio.ErrBufferFull):
		case errors.Is(err, io.EOF):
			return nil, fault.New(fault.Invalid, "the bundle ends at line %d, before its checksum: it was cut off", r.lines+1)
		default:
			return nil, err
		}
	}
}

// next returns the line that was read ahead, or reads one after the manifest.
func (r *Reader) next() (*line, error) {
	if l := r.ahead; l != nil {
		r.ahead = nil
		return l, nil
	}
	text, err := r.text()
	if err != nil {
		return nil, err
	}
	l := new(line)
	if err := json.Unmarshal(text, l, json.RejectUnknownMembers(true)); err != nil {
		return nil, r.wrong("cannot be read: %v", err)
	}
	kinds := 0
	for _, is := range []bool{len(l.Metadata) > 0, l.Envelope != nil, l.Side != nil, l.End != nil, l.Content != nil, l.Piece != nil, l.SHA256 != ""} {
		if is {
			kinds++
		}
	}
	if kinds != 1 {
		return nil, r.wrong("must have one of channel, envelope, side, end, content, piece and sha256")
	}
	if l.SHA256 != "" {
		if want := hex.EncodeToString(r.hash.Sum(nil)); l.SHA256 != want || l.Lines != r.lines {
			return nil, r.wrong("says that the file has %d lines with the checksum %.64s, but it has %d with %s: it was changed or cut", l.Lines, l.SHA256, r.lines, want)
		}
		return l, nil
	}
	r.hash.Write(text)
	r.hash.Write([]byte("\n"))
	return l, nil
}

func (r *Reader) wrong(format string, args ...any) error {
	return fault.New(fault.Invalid, "line %d of the bundle %s", r.lines, fmt.Sprintf(format, args...))
}

// Next returns the next channel or content. It skips what was not read of the
// last one. At the end, if the checksum is right, it returns io.EOF.
func (r *Reader) Next() (Part, error) {
	for r.open {
		l, err := r.next()
		if err != nil {
			return Part{}, err
		}
		if r.open = l.Envelope != nil || l.Side != nil || l.Piece != nil; !r.open && l.End == nil {
			r.ahead = l
		}
	}
	if r.first {
		r.first = false
		return r.channel(r.Manifest.Channel)
	}
	l, err := r.next()
	if err != nil {
		return Part{}, err
	}
	switch {
	case len(l.Metadata) > 0 && r.left.Channels > 0:
		return r.channel(l.Channel)
	case l.Content != nil && r.left.Contents > 0:
		r.left.Contents--
		r.open = true
		return Part{Content: l.Content}, nil
	case l.SHA256 != "" && r.left.Channels == 0 && r.left.Contents == 0:
		if _, err := r.in.ReadByte(); !errors.Is(err, io.EOF) {
			return Part{}, fault.New(fault.Invalid, "something follows the bundle's checksum")
		}
		return Part{}, io.EOF
	}
	return Part{}, r.wrong("is not what its manifest announces: %d channels and %d contents are to follow", r.left.Channels, r.left.Contents)
}

func (r *Reader) channel(c Channel) (Part, error) {
	m, err := channel.DecodeMetadata(c.Metadata, nil)
	if err != nil {
		return Part{}, r.wrong("has metadata that cannot be read: %v", err)
	}
	r.left.Channels--
	r.open = true
	return Part{Channel: c, Metadata: m}, nil
}

// Envelopes visits the envelopes of the channel that Next returned, with what
// was kept beside them, and checks that there are as many as were announced.
// After the last channel it reads the checksum as well, so that a caller that
// has read all of them knows that they are complete.
func (r *Reader) Envelopes(of Channel) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		seq, sides := uint64(0), uint64(0)
		for {
			l, err := r.next()
			var next Entry
			switch {
			case err != nil:
			case l.Envelope != nil:
				if seq++; l.Envelope.Sequence != seq || seq > of.Envelopes {
					err = r.wrong("has sequence %d where %d of %d is due", l.Envelope.Sequence, seq, of.Envelopes)
				}
				next = Entry{Envelope: l.Envelope.envelope()}
			case l.Side != nil:
				if sides++; l.Side.Sequence != seq || sides > of.Side {
					err = r.wrong("has side envelope %d of %d behind sequence %d where %d was the last", sides, of.Side, l.Side.Sequence, seq)
				}
				next = Entry{Envelope: l.Side.envelope(), Side: true}
			case l.End == nil || l.End.Sequence != seq || seq != of.Envelopes || sides != of.Side:
				err = r.wrong("must be the end of a channel of %d envelopes and %d beside them; there were %d and %d", of.Envelopes, of.Side, seq, sides)
			default:
				r.open, r.end = false, *l.End
				if err = r.peek(); err == nil {
					return
				}
			}
			if err != nil {
				yield(Entry{}, err)
				return
			}
			if !yield(next, nil) {
				return
			}
		}
	}
}

// peek reads the next line if only the checksum can follow, and so verifies
// it.
func (r *Reader) peek() (err error) {
	if r.left.Channels == 0 && r.left.Contents == 0 {
		r.ahead, err = r.next()
	}
	return err
}

// End returns what followed the envelopes that were read last.
func (r *Reader) End() End { return r.end }

// Pieces reads the content that Next returned.
func (r *Reader) Pieces() io.Reader { return &pieces{from: r} }

type pieces struct {
	from *Reader
	rest []byte
}

func (p *pieces) Read(into []byte) (int, error) {
	for len(p.rest) == 0 {
		if !p.from.open {
			return 0, io.EOF
		}
		l, err := p.from.next()
		if err != nil {
			return 0, err
		}
		if l.Piece == nil {
			p.from.ahead, p.from.open = l, false
			return 0, io.EOF
		}
		p.rest = l.Piece
	}
	n := copy(into, p.rest)
	p.rest = p.rest[n:]
	return n, nil
}
