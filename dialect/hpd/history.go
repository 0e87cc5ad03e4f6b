package hpd

import (
	"bufio"
	"net/http"
	"strconv"

	"github.com/parley-hub/parley/dialect/hpd/wire"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/journal"
	"github.com/parley-hub/parley/view/branch"
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
	c.w.WriteHeader(http.StatusOK)
	out := bufio.NewWriterSize(c.w, 64<<10)
	_ = out.WriteByte('[') // the writer keeps its first error for Flush
	var buf []byte
	if to > after {
		first := true
		for e, err := range s.hub.Log(c.Context(), x.channel, after+1, to) {
			if err != nil {
				s.log.Warn("history cut off", "error", err)
				panic(http.ErrAbortHandler) // a list that ends early must not look whole
			}
			name, base, ok := wire.Stored(e, x.wire())
			if !ok {
				continue
			}
			if buf = buf[:0]; !first {
				buf = append(buf, ',')
			}
			first = false
			buf = wire.AppendLive(buf, c.surface, name, e.Data, &base)
			if _, err := out.Write(buf); err != nil {
				return nil // the reader is gone
			}
		}
	}
	_ = out.WriteByte(']')
	_ = out.Flush()
	return nil
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

// parsePlace reads a position, or a bare sequence number: then only Seq is set.
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

// runsOf projects a branch's history onto its runs.
func (s *Server) runsOf(c *call, x *scope) ([]wire.Run, error) {
	projection := wire.Runs{Scope: x.wire()}
	for e, err := range s.hub.Log(c.Context(), x.channel, 0, 0) {
		if err != nil {
			return nil, err
		}
		if event, ok := branch.FromEnvelope(e); ok {
			projection.Apply(event)
		}
	}
	return projection.All(), nil
}

func (s *Server) listRuns(c *call) error {
	x, err := s.scope(c)
	if err != nil {
		return err
	}
	all, err := s.runsOf(c, x)
	if err != nil {
		return err
	}
	list := []wire.Run{}
	for _, run := range all {
		if run.AgentID == c.agent {
			list = append(list, run)
		}
	}
	return c.write(http.StatusOK, list)
}

func (s *Server) activeRun(c *call) error {
	x, err := s.scope(c)
	if err != nil {
		return err
	}
	if x.state.Run == nil {
		return c.writeRaw(http.StatusOK, []byte("null"))
	}
	all, err := s.runsOf(c, x)
	if err != nil {
		return err
	}
	if n := len(all); n > 0 && all[n-1].Status == wire.RunActive {
		return c.write(http.StatusOK, all[n-1])
	}
	return c.writeRaw(http.StatusOK, []byte("null"))
}

func (s *Server) getRun(c *call) error {
	x, err := s.scope(c)
	if err != nil {
		return err
	}
	all, err := s.runsOf(c, x)
	if err != nil {
		return err
	}
	for _, run := range all {
		if run.RuntimeRunID == c.item {
			return c.write(http.StatusOK, run)
		}
	}
	return fault.New(fault.NotFound, "Run '%.100s' was not found on branch '%s'.", c.item, x.branch)
}
