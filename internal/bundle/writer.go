package bundle

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"hash"
	"io"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-hub/parley/envelope"
)

// PieceBytes is how much of a content one line holds.
const PieceBytes = 192 << 10

// Writer writes a bundle, line by line, in the order of the package's comment.
type Writer struct {
	out   *bufio.Writer
	hash  hash.Hash
	lines int
	err   error
}

// NewWriter begins a bundle.
func NewWriter(w io.Writer, m Manifest) *Writer {
	b := &Writer{out: bufio.NewWriter(w), hash: sha256.New()}
	m.Version = Version
	b.put(m)
	return b
}

func (w *Writer) put(v any) {
	if w.err != nil {
		return
	}
	text, err := json.Marshal(v, jsontext.AllowInvalidUTF8(true))
	if err != nil {
		w.err = err
		return
	}
	w.lines++
	text = append(text, '\n')
	w.hash.Write(text)
	_, w.err = w.out.Write(text)
}

// Channel begins a channel of a home.
func (w *Writer) Channel(c Channel) error {
	w.put(line{Channel: c})
	return w.err
}

// Envelope writes the channel's next envelope.
func (w *Writer) Envelope(e *envelope.Envelope) error {
	s, err := of(e)
	if err != nil {
		return err
	}
	w.put(line{Envelope: s})
	return w.err
}

// Side writes an envelope that is kept beside the history, after the envelope
// that its sequence names.
func (w *Writer) Side(e *envelope.Envelope) error {
	s, err := of(e)
	if err != nil {
		return err
	}
	w.put(line{Side: s})
	return w.err
}

// End ends a channel.
func (w *Writer) End(e End) error {
	w.put(line{End: &e})
	return w.err
}

// Content writes a file of the home.
func (w *Writer) Content(c Content, from io.Reader) error {
	w.put(line{Content: &c})
	piece := make([]byte, PieceBytes)
	for w.err == nil {
		n, err := io.ReadFull(from, piece)
		if n > 0 {
			w.put(line{Piece: piece[:n]})
		}
		if err != nil {
			if err != io.EOF && err != io.ErrUnexpectedEOF {
				return err
			}
			break
		}
	}
	return w.err
}

// Close writes the checksum.
func (w *Writer) Close() error {
	w.put(sum{SHA256: hex.EncodeToString(w.hash.Sum(nil)), Lines: w.lines + 1})
	if w.err != nil {
		return w.err
	}
	return w.out.Flush()
}
