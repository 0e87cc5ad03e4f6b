package content

import (
	"context"
	"errors"
	"io"

	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub/internal/ledger"
	"github.com/parley-hub/parley/hub/internal/schema"
	"github.com/parley-hub/parley/journal"
)

// Open opens a content. Its bytes are read on demand, one piece at a time; seeking
// reads nothing, so reading a range costs only the length of the range. The reads
// use ctx.
func (s *Store) Open(ctx context.Context, home, id string) (Info, io.ReadSeekCloser, error) {
	info, err := s.find(ctx, home, id)
	if err != nil {
		return Info{}, nil, err
	}
	return info, &reader{ctx: ctx, store: s, log: s.Ledger.Tenant.ContentLog(home, id), size: info.Size}, nil
}

type reader struct {
	ctx   context.Context // from Open
	store *Store
	log   journal.LogName
	size  int64
	at    int64
	piece []byte // the piece that holds first
	first int64  // the position of the piece's first byte
}

// Read implements io.Reader.
func (r *reader) Read(p []byte) (int, error) {
	if r.at >= r.size {
		return 0, io.EOF
	}
	if len(p) == 0 {
		return 0, nil
	}
	if r.at < r.first || r.at >= r.first+int64(len(r.piece)) {
		if err := r.load(); err != nil {
			return 0, err
		}
	}
	n := copy(p, r.piece[r.at-r.first:])
	r.at += int64(n)
	return n, nil
}

// load reads the piece that the next byte is in.
func (r *reader) load() error {
	number := r.at / schema.ContentPiece
	seq := uint64(number) + 1
	page, err := r.store.Ledger.Journal.Read(r.ctx, r.log, journal.ReadOptions{From: seq, To: seq})
	if err != nil {
		return ledger.Unavailable(err)
	}
	first := number * schema.ContentPiece
	if len(page.Entries) == 0 || r.at >= first+int64(len(page.Entries[0].Data)) {
		return fault.New(fault.Gap, "the content was dropped while it was read")
	}
	r.piece, r.first = page.Entries[0].Data, first
	return nil
}

// Seek implements io.Seeker.
func (r *reader) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekCurrent:
		offset += r.at
	case io.SeekEnd:
		offset += r.size
	}
	if offset < 0 || whence < io.SeekStart || whence > io.SeekEnd {
		return 0, fault.Wrap(fault.Invalid, errSeek, "%v", errSeek)
	}
	r.at = offset
	return offset, nil
}

var errSeek = errors.New("a place in a content is not before its first byte")

// Close implements io.Closer.
func (r *reader) Close() error {
	r.piece, r.at = nil, r.size
	return nil
}
