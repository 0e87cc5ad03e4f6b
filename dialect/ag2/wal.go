package ag2

import (
	"context"
	"fmt"
	"sync"

	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/dialect/ag2/wire"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
)

// logBytes is how much of a frame a log may fill, besides the rest of a response.
const logBytes = wire.MaxFrame - 512

// LongLog is the size of a log, in bytes, from which a full read logs a warning:
// AG2's client reads the whole log three times a turn, and accepts at most 1 MiB.
const LongLog = logBytes / 10 * 7

// readWAL reads a slice of a channel's log by index. AG2's client folds it, so
// every envelope keeps its position; data that no identity here may see is emptied,
// unless folds need it.
func (c *conn) readWAL(ctx context.Context, p wire.ReadWALParams) ([]byte, error) {
	m, err := c.channel(ctx, p.Channel)
	if err != nil {
		return []byte("[]"), fault.IgnoreNotFound(err)
	}
	if c.server.isForeign(m) {
		return c.readForeign(ctx, m, p)
	}
	length, err := c.server.cfg.Hub.Length(ctx, p.Channel)
	if err != nil {
		return nil, err
	}
	from, to := slice(p.Since, p.Until, length)
	if from >= to {
		return []byte("[]"), nil
	}
	mask, err := c.mask(ctx, p.Channel)
	if err != nil {
		return nil, err
	}
	r := walReader{full: p.Since == 0 && p.Until == nil && lean(m)}
	for e, err := range c.server.cfg.Hub.Log(ctx, p.Channel, from+1, to) {
		if err != nil {
			return nil, err
		}
		if !r.add(mask(e)) {
			break
		}
	}
	if r.full && r.size >= LongLog {
		c.server.longLog(ctx, p.Channel, r.size)
	}
	return r.result()
}

// longLog warns of a log that AG2's client will soon not be able to read, and
// audits it once for each channel.
func (s *Server) longLog(ctx context.Context, channelID string, size int) {
	s.stats.longLogs.Add(1)
	s.warnings.Warn(s.cfg.Log, s.cfg.Now(), "a channel's log nears what AG2's client can read at once",
		"channel_id", channelID, "bytes", size, "limit", logBytes)
	if !s.warned.add(channelID) {
		return
	}
	record := map[string]any{"channel_id": channelID, "bytes": size, "limit": logBytes}
	if err := s.cfg.Hub.Audit(ctx, "channel_log_long", record); err != nil {
		s.cfg.Log.Warn("not audited", "kind", "channel_log_long", "channel_id", channelID, "error", err)
	}
}

// ChannelWarnings returns warnings about a channel whose log AG2's clients cannot
// read, or soon will not be able to.
func (s *Server) ChannelWarnings(ctx context.Context, m *channel.Metadata) ([]string, error) {
	if !lean(m) {
		return nil, nil
	}
	r := walReader{full: true}
	for e, err := range s.cfg.Hub.Log(ctx, m.ID, 0, 0) {
		if err != nil {
			return nil, err
		}
		if !r.add(e) {
			break
		}
	}
	switch {
	case r.size < LongLog:
		return nil, nil
	case len(r.lean) > logBytes:
		return []string{fmt.Sprintf("AG2 clients can no longer read the log, which takes more than the %d bytes they can be sent at once: "+
			"they cannot take turns here any more; close the channel and open another", logBytes)}, nil
	case r.over:
		return []string{fmt.Sprintf("the log takes about %d bytes, more than the %d that AG2 clients can read at once: they read it without task events "+
			"and custom types, which takes %d", r.size, logBytes, len(r.lean))}, nil
	}
	return []string{fmt.Sprintf("the log takes %d bytes (%d %%) of the %d that AG2 clients can read at once; from there on they read it without task "+
		"events and custom types, and if that does not help they cannot take turns here any more", r.size, r.size*100/logBytes, logBytes)}, nil
}

// once records what was done once. It is bounded: when it is full, it forgets
// everything.
type once struct {
	mu   sync.Mutex
	seen map[string]bool
}

const maxOnce = 10_000

func (o *once) add(key string) (first bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.seen[key] {
		return false
	}
	if o.seen == nil || len(o.seen) >= maxOnce {
		o.seen = map[string]bool{}
	}
	o.seen[key] = true
	return true
}

// slice returns Python's [since:until] of a list, as indexes into it.
func slice(since wire.Index, until *wire.Index, length uint64) (from, to uint64) {
	at := func(i wire.Index) uint64 {
		n := wire.Index(length)
		if i < 0 {
			i = max(i, -n) + n
		}
		return uint64(min(i, n))
	}
	to = length
	if until != nil {
		to = at(*until)
	}
	return at(since), to
}

// walReader collects a log as JSON. When a full read grows too large, it keeps only
// what AG2's client folds or shows.
type walReader struct {
	full bool
	all  []byte // nil once too large
	lean []byte // the part that a full read needs
	size int    // bytes of all
	over bool
}

// add adds one envelope; it returns false if the rest can be skipped.
func (r *walReader) add(e *envelope.Envelope) bool {
	start := len(r.all)
	if !r.over {
		r.all = appendElement(r.all, e)
		r.size += len(r.all) - start
		r.over = len(r.all) > logBytes
	} else {
		r.size += len(e.Data) + 512
	}
	if !r.full {
		return !r.over
	}
	if folds(e.Type) {
		r.lean = appendElement(r.lean, e)
	}
	return len(r.lean) <= logBytes
}

func appendElement(list []byte, e *envelope.Envelope) []byte {
	return wire.AppendEnvelope(append(list, ','), e)
}

func (r *walReader) result() ([]byte, error) {
	list := r.all
	if r.over && r.full {
		list = r.lean
	}
	if len(list) > logBytes || r.over && !r.full {
		return nil, fault.New(fault.TooLarge, "the log makes a frame of more than %d bytes, which no client takes; read it in parts with since and until", wire.MaxFrame)
	}
	if len(list) == 0 {
		return []byte("[]"), nil
	}
	list[0] = '['
	return append(list, ']'), nil
}

// lean reports whether a channel's adapter is one of AG2's, which fold only
// the types that folds names.
func lean(m *channel.Metadata) bool {
	switch m.Manifest.Type {
	case "consulting", "conversation", "discussion", "workflow":
		return true
	}
	return false
}

// folds reports whether AG2's client folds or shows a type, or needs it to
// know the channel's state.
func folds(eventType string) bool {
	switch eventType {
	case envelope.TypeText, envelope.TypePacket, envelope.TypeContextSet:
		return true
	}
	return envelope.IsChannelEvent(eventType)
}
