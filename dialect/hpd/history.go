package hpd

import (
	"net/http"
	"strconv"

	"github.com/parley-hub/parley/dialect/hpd/wire"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/internal/answers"
	"github.com/parley-hub/parley/journal"
)

// getEvents answers with the history as live envelopes, read and written a
// piece at a time.
func (s *Server) getEvents(c *call) error {
	after, limit, err := historyRange(c)
	if err != nil {
		return err
	}
	x, err := s.scope(c)
	if err != nil {
		return err
	}
	head, err := s.hub.Length(c.Context(), x.channel)
	if err != nil {
		return err
	}
	to := head
	if limit > 0 && limit < to-min(after, to) {
		to = after + limit
	}
	c.w.Header().Set("Content-Type", "application/json")
	out := c.answer.Pieces(c.Request, c.w, s.cfg.Limits.Write)
	buf := []byte{'['}
	if to > after {
		first := true
		for e, err := range s.hub.Log(c.Context(), x.channel, after+1, to) {
			if err != nil {
				s.log.Warn("history cut off", "error", err)
				panic(http.ErrAbortHandler) // a list that ends early must not look complete
			}
			name, base, ok := wire.Stored(e, x.wire())
			if !ok {
				continue
			}
			if !first {
				buf = append(buf[:0], ',')
			}
			first = false
			buf = wire.AppendLive(buf, c.surface, name, e.Data, &base)
			if _, err := out.Write(buf); err != nil {
				return cutOff(out, err)
			}
			buf = buf[:0]
		}
	}
	return cutOff(out, out.End(string(buf)+"]"))
}

// cutOff returns the error if the response has not begun. A response that has begun
// is aborted, because it must not look complete.
func cutOff(out *answers.Pieces, err error) error {
	if err != nil && out.Begun() {
		panic(http.ErrAbortHandler)
	}
	return err
}

// historyRange reads ?after= and ?limit=.
func historyRange(c *call) (after, limit uint64, err error) {
	values := c.URL.Query()
	if text := values.Get("after"); text != "" {
		position, err := parsePlace(text)
		if err != nil {
			return 0, 0, err
		}
		after = position.Seq
	}
	if text := values.Get("limit"); text != "" {
		if limit, err = strconv.ParseUint(text, 10, 63); err != nil || limit == 0 {
			return 0, 0, fault.New(fault.Invalid, "`limit` is %.40q; it is a number from 1", text)
		}
	}
	return after, limit, nil
}

// parsePlace reads a position, or a bare sequence number, for which only Seq is
// set.
func parsePlace(text string) (journal.Position, error) {
	if seq, err := strconv.ParseUint(text, 10, 63); err == nil {
		return journal.Position{Seq: seq}, nil
	}
	position, err := journal.ParsePosition(text)
	if err != nil {
		return position, fault.New(fault.Invalid, "position %.60q cannot be read; it is the id of an event of a stream, or a sequence number", text)
	}
	return position, nil
}
