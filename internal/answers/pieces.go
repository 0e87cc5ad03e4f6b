package answers

import (
	"context"
	"net/http"
	"time"
)

// pieceBytes is how much of a long answer is gathered before it is written.
const pieceBytes = 64 << 10

// longest is how long an answer that has begun waits for its turn. It is only
// delayed: ending it would leave out the rest.
const longest = time.Hour

// Pieces writes a long answer while it is made: it is read in turns, and what
// is written counts until its reader has it, outside of turns.
type Pieces struct {
	of    *Answer
	ctx   context.Context //nolint:containedctx // it is the request's, and lives as long
	to    http.ResponseWriter
	most  time.Duration
	buf   []byte
	begun bool
	waits bool // the turn ended with the last piece
}

// Pieces begins an answer to a request whose turn has begun. The first piece
// is refused if there is no room for it; later ones wait for room, but no
// longer than most.
func (a *Answer) Pieces(r *http.Request, to http.ResponseWriter, most time.Duration) *Pieces {
	return &Pieces{of: a, ctx: r.Context(), to: to, most: most}
}

// Begun reports whether anything was written. An answer that has not begun can
// still be a refusal.
func (p *Pieces) Begun() bool { return p.begun }

// Write adds to the answer. The bytes count as read. It waits for the next
// turn only if more follows after a piece.
func (p *Pieces) Write(b []byte) (int, error) {
	if p.waits {
		if err := p.of.Begin(p.ctx, longest); err != nil {
			return 0, err
		}
		p.waits = false
	}
	p.buf = append(p.buf, b...)
	p.of.Read(len(b))
	if len(p.buf) < pieceBytes {
		return len(b), nil
	}
	return len(b), p.flush()
}

// End writes the rest, and a tail that was not read.
func (p *Pieces) End(tail string) error {
	p.buf = append(p.buf, tail...)
	return p.flush()
}

func (p *Pieces) flush() error {
	p.of.EndTurn()
	p.waits = true
	if err := p.room(int64(len(p.buf))); err != nil {
		return err
	}
	defer p.of.Release()
	p.begun = true
	_, err := p.to.Write(p.buf)
	if p.buf = p.buf[:0]; cap(p.buf) > 2*pieceBytes {
		p.buf = nil
	}
	return err
}

func (p *Pieces) room(n int64) error {
	if !p.begun {
		return p.of.Hold(n)
	}
	return p.of.Wait(p.ctx, n, p.most)
}

// paced is an answer that others write in pieces which they have read, such as
// http.ServeContent.
type paced struct {
	http.ResponseWriter
	of    *Answer
	ctx   context.Context //nolint:containedctx // it is the request's, and lives as long
	most  time.Duration
	waits bool
}

// Paced counts what is written to an answer, each write as a piece.
func (a *Answer) Paced(r *http.Request, to http.ResponseWriter, most time.Duration) http.ResponseWriter {
	return &paced{ResponseWriter: to, of: a, ctx: r.Context(), most: most}
}

func (p *paced) Write(b []byte) (int, error) {
	if p.waits {
		if err := p.of.Begin(p.ctx, longest); err != nil {
			return 0, err
		}
	}
	p.of.Read(len(b))
	p.of.EndTurn()
	p.waits = true
	if err := p.of.Wait(p.ctx, int64(len(b)), p.most); err != nil {
		return 0, err
	}
	defer p.of.Release()
	return p.ResponseWriter.Write(b)
}

// Unwrap serves http.ResponseController.
func (p *paced) Unwrap() http.ResponseWriter { return p.ResponseWriter }
