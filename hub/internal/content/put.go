package content

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"hash"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub/internal/ledger"
	"github.com/parley-hub/parley/hub/internal/schema"
	"github.com/parley-hub/parley/journal"
)

// Put stores the bytes of a reader as a content of a home, in pieces, and returns
// its description. The content is invisible until it is complete. If info has a
// size or a SHA-256, the content must match it. Put sets the id and the time,
// unless info has an id: such a content was stored elsewhere before, and keeps
// both.
func (s *Store) Put(ctx context.Context, home string, info Info, from io.Reader) (Info, error) {
	if err := s.Homes.Check(ctx, home); err != nil {
		return Info{}, err
	}
	if err := s.check(&info); err != nil {
		return Info{}, err
	}
	now := s.Ledger.Now().UTC().Truncate(time.Microsecond)
	id, err := s.Ledger.Minter.Mint(now, "")
	if err != nil {
		return Info{}, ledger.Unavailable(err)
	}
	if info.ID == "" {
		info.ID, info.CreatedAt = id, now
	} else if !envelope.ValidID(info.ID) || info.ID > id || info.CreatedAt.IsZero() || info.CreatedAt.After(now) {
		return Info{}, fault.New(fault.Invalid, "content %.100q of %s is not one that was stored before; leave out its id, and it gets one", info.ID, info.CreatedAt)
	}
	w := &writer{store: s, home: home, begun: now, want: info, info: info, log: s.Ledger.Tenant.ContentLog(home, info.ID), sum: sha256.New()}
	w.info.Size = 0
	if err := w.reserve(ctx, cost(0)); err != nil {
		return Info{}, err
	}
	if err := w.copy(ctx, from); err != nil {
		w.giveUp()
		return Info{}, err
	}
	return w.info, nil
}

func (s *Store) check(info *Info) error {
	if err := s.Ledger.BoundRecord("name and type of a content", len(info.Name)+len(info.Type)+len(info.By)); err != nil {
		return err
	}
	if !utf8.ValidString(info.Name) || !utf8.ValidString(info.Type) || !utf8.ValidString(info.By) {
		return fault.New(fault.Invalid, "name and type of a content are UTF-8 text")
	}
	info.SHA256 = strings.ToLower(info.SHA256)
	if sum, err := hex.DecodeString(info.SHA256); err != nil || len(sum) != 0 && len(sum) != sha256.Size {
		return fault.New(fault.Invalid, "a SHA-256 has 64 hex digits, not %.80q", info.SHA256)
	}
	switch {
	case info.Size < 0:
		return fault.New(fault.Invalid, "the size of a content is %d; it is 0, which means unknown, or more", info.Size)
	case info.Size > s.Limits.Content:
		return errTooLarge(s.Limits.Content)
	}
	return nil
}

func errTooLarge(limit int64) error {
	return fault.New(fault.TooLarge, "the content has more than %d bytes, which is the limit (limits.content)", limit)
}

// writer writes one content.
type writer struct {
	store    *Store
	home     string
	begun    time.Time
	log      journal.LogName
	want     Info // as the caller described it
	info     Info
	sum      hash.Hash
	due      []byte // index key while it is not complete
	seq      uint64
	reserved int64
}

// copy stores the reader's bytes. It holds one piece at a time.
func (w *writer) copy(ctx context.Context, from io.Reader) error {
	limit := w.store.Limits.Content
	piece := make([]byte, schema.ContentPiece)
	for {
		// Reading one byte more than the limit shows whether there is more.
		n, err := readPiece(io.LimitReader(from, limit+1-w.info.Size), piece)
		w.info.Size += int64(n)
		w.sum.Write(piece[:n])
		ended := errors.Is(err, io.EOF)
		switch {
		case errors.Is(err, io.ErrUnexpectedEOF):
			return fault.Wrap(fault.Invalid, err, "the content breaks off after %d bytes: send it again", w.info.Size)
		case err != nil && !ended:
			return fault.Wrap(fault.Invalid, err, "the content could not be read: %v", err)
		case w.info.Size > limit:
			return errTooLarge(limit)
		}
		if err := w.reserve(ctx, int64(n)); err != nil {
			return err
		}
		if ended {
			return w.finish(ctx, piece[:n])
		}
		if err := w.add(ctx, piece); err != nil {
			return err
		}
	}
}

// readPiece fills the piece, or reads up to the end and returns io.EOF. Unlike
// io.ReadFull it never returns io.ErrUnexpectedEOF itself: a reader returns that
// error when its input was cut off.
func readPiece(from io.Reader, piece []byte) (n int, err error) {
	for n < len(piece) && err == nil {
		var read int
		read, err = from.Read(piece[n:])
		n += read
	}
	if n == len(piece) {
		err = nil
	}
	return n, err
}

// add stores a piece that is not the last. The first piece also sets when an
// unfinished content is removed.
func (w *writer) add(ctx context.Context, piece []byte) error {
	record := journal.Record{Data: piece}
	if w.seq == 0 {
		w.due = schema.DueKey(schema.DueSeed, w.begun.Add(AbandonAfter), schema.InHome(w.home, w.info.ID))
		record.Put = []journal.IndexPut{{Key: w.due, Value: []byte(schema.FamilyContent)}}
	}
	return w.append(ctx, record)
}

// finish stores the last piece with the content's description, which makes the
// content visible.
func (w *writer) finish(ctx context.Context, piece []byte) error {
	w.info.SHA256 = hex.EncodeToString(w.sum.Sum(nil))
	switch {
	case w.want.SHA256 != "" && w.want.SHA256 != w.info.SHA256:
		return fault.New(fault.Invalid, "the content has the SHA-256 %s, not %s: send it again", w.info.SHA256, w.want.SHA256)
	case w.want.Size != 0 && w.want.Size != w.info.Size:
		return fault.New(fault.Invalid, "the content has %d bytes, not %d: send it again", w.info.Size, w.want.Size)
	}
	last, err := schema.ContentRecord{
		ID: w.info.ID, Name: w.info.Name, Type: w.info.Type, Size: w.info.Size, SHA256: w.info.SHA256, By: w.info.By,
		CreatedAt: envelope.FormatTime(w.info.CreatedAt),
	}.Finish(w.home)
	if err != nil {
		return fault.Wrap(fault.Invalid, err, "what the content is cannot be written: %v", err)
	}
	if w.due != nil {
		last.Remove = [][]byte{w.due}
	}
	if len(piece) == 0 {
		return w.append(ctx, last)
	}
	return w.append(ctx, journal.Record{Data: piece}, last)
}

// append makes records durable. It fails if the content was removed with its home
// in the meantime.
func (w *writer) append(ctx context.Context, records ...journal.Record) error {
	if w.due != nil && w.store.Ledger.Now().Sub(w.begun) > AbandonAfter-time.Minute { // before the sweeper removes it
		return ErrTooLong("content")
	}
	ticket, err := w.store.Homes.Append(ctx, schema.InHome(w.home, w.info.ID), journal.Batch{Appends: []journal.Append{
		{Log: w.log, Expect: journal.Exactly(w.seq), Records: records},
	}})
	if ledger.IsConflict(err) {
		return fault.Wrap(fault.Unavailable, err, "the content was removed while it was stored: %v", err)
	}
	if err == nil {
		err = ticket.Wait(ctx)
	}
	w.seq += uint64(len(records))
	return ledger.Unavailable(err)
}

func (w *writer) reserve(ctx context.Context, n int64) error {
	if err := w.store.reserve(ctx, w.home, n); err != nil {
		return err
	}
	w.reserved += n
	return nil
}

// giveUp removes the pieces that were stored. If that fails, the sweeper removes
// them.
func (w *writer) giveUp() {
	if w.seq > 0 {
		ctx, cancel := context.WithTimeout(w.store.Background, 10*time.Second)
		defer cancel()
		if err := w.store.Ledger.Drop(ctx, w.log); err != nil {
			w.store.Ledger.Log.Warn("unfinished content is not removed yet", "content_id", w.info.ID, "error", err)
		}
	}
	w.store.release(w.home, w.reserved)
}
