package hpd

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/parley-hub/parley/dialect/hpd/wire"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub"
	"github.com/parley-hub/parley/internal/sse"
	"github.com/parley-hub/parley/journal"
	"github.com/parley-hub/parley/view/branch"
)

// watching is a reader of one branch.
type watching struct {
	follower *hub.Follower
	scope    *scope
	surface  wire.Surface
	resumed  bool     // it gave a position, so it also gets stored events that are not shown live
	gap      *hub.Gap // set if its position no longer exists
	run      string   // the run whose end ends the stream; empty: none
	over     bool     // the end of the run was shown
}

// watch follows a branch, from now on or after a position. The reader gets
// everything that is published after watch returns.
func (s *Server) watch(ctx context.Context, x *scope, surface wire.Surface, after string) (*watching, error) {
	w := &watching{scope: x, surface: surface, resumed: after != ""}
	o := hub.FollowOptions{Queue: s.cfg.Limits.Behind, Bytes: s.cfg.Limits.BehindBytes, Strict: true, FromNow: !w.resumed}
	if w.resumed {
		place, err := parsePlace(after)
		if err != nil {
			return nil, err
		}
		if o.After, err = s.wholePosition(ctx, x, place); err != nil {
			return nil, err
		}
	}
	var err error
	w.follower, err = s.hub.Follow(ctx, x.channel, o)
	if errors.As(err, &w.gap) {
		o.After = w.gap.Head
		w.follower, err = s.hub.Follow(ctx, x.channel, o)
	}
	return w, err
}

// wholePosition adds the log's own epoch to a bare sequence number.
func (s *Server) wholePosition(ctx context.Context, x *scope, place journal.Position) (journal.Position, error) {
	if place.Epoch != 0 || place.Incarnation != 0 {
		return place, nil
	}
	head, err := s.hub.Position(ctx, x.channel)
	if err != nil || place.Seq == 0 {
		return journal.Position{}, err
	}
	head.Seq = place.Seq
	return head, nil
}

// gapEvent returns the event that reports that a position no longer exists.
func gapEvent(gap *hub.Gap) *wire.Event {
	return &wire.Event{Payload: wire.StreamGap{Reason: gap.Reason, After: gap.Head.String()}}
}

// next returns the reader's next event as bytes. If there is none, wake is the
// channel to wait for.
func (s *Server) next(ctx context.Context, w *watching) (id string, data []byte, wake <-chan struct{}, err error) {
	if w.gap != nil {
		data, err := gapEvent(w.gap).Append(nil, w.surface)
		w.gap = nil
		return "", data, nil, err
	}
	if w.over {
		return "", nil, nil, errRunShown
	}
	ev, wake, err := w.follower.TryNext(ctx)
	if _, ok := errors.AsType[*hub.Gap](err); ok { // a log that is being followed has a gap only after its deletion
		err = errNoBranch(w.scope.branch, w.scope.session.id)
	}
	if err != nil || wake != nil {
		return "", nil, wake, err
	}
	if !w.resumed && !ev.Live && hidden(&ev) {
		return "", nil, nil, nil
	}
	data, ok := s.render(&ev, w.scope.wire(), w.surface)
	if !ok {
		return "", nil, nil, nil
	}
	if !ev.Live && !ev.Side {
		id = ev.Position.String()
		w.over = w.run != "" && completes(ev.Envelope, w.run)
	}
	return id, data, nil, nil
}

// errRunShown ends the stream of one run.
var errRunShown = errors.New("the run has ended")

// completes reports whether an event is the end of a run.
func completes(e *envelope.Envelope, id string) bool {
	name, _ := branch.WireType(e.Type)
	if name != branch.BranchRunCompleted {
		return false
	}
	var end wire.BranchRunCompleted
	return json.Unmarshal(e.Data, &end) == nil && end.RuntimeRunID == id
}

// live streams a branch's events until the reader disconnects, the branch is
// deleted or the server closes.
func (s *Server) live(c *call, x *scope) error {
	after := sse.LastEventID(c.Request)
	if after == "" {
		after = c.URL.Query().Get("after")
	}
	if c.Method == http.MethodHead {
		return c.empty(http.StatusOK)
	}
	return s.stream(c, x, after, nil)
}

// stream watches a branch, calls begin, if any, and writes the branch's events.
func (s *Server) stream(c *call, x *scope, after string, begin func(*watching) error) error {
	return s.streamFrom(c, func(ctx context.Context) (feed, error) {
		w, err := s.watch(ctx, x, c.surface, after)
		if err != nil {
			return feed{}, err
		}
		if begin != nil {
			if err := begin(w); err != nil {
				w.follower.Close()
				return feed{}, err
			}
		}
		return feed{func() (string, []byte, <-chan struct{}, error) { return s.next(ctx, w) }, w.follower.Close}, nil
	})
}

// feed is the source of a stream.
type feed struct {
	// next returns the next event as bytes, or a channel to wait for if there is
	// none.
	next  func() (id string, data []byte, wake <-chan struct{}, err error)
	close func()
}

// streamFrom writes events as they come.
func (s *Server) streamFrom(c *call, open func(context.Context) (feed, error)) error {
	release, err := s.seat()
	if err != nil {
		return err
	}
	defer release()
	ctx, cancel := s.during(c.Context())
	defer cancel()
	from, err := open(ctx)
	if err != nil {
		return err
	}
	defer from.close()
	defer s.attend(c.who, c.RemoteAddr)()
	c.w.Header().Set("Cache-Control", "no-cache")
	stream := sse.Start(c.w, c.Request, sse.Config{
		Write: s.cfg.Limits.Write, KeepAlive: s.cfg.Limits.KeepAlive, KeepConnection: true,
		Before: s.mayWrite(c),
	})
	defer stream.End()
	err = stream.Run(ctx, func() (<-chan struct{}, error) {
		return c.answer.Step(stream.Buffered(), func() (int, <-chan struct{}, error) {
			id, data, wake, err := from.next()
			if data != nil {
				stream.Event(id, "", data)
			}
			return len(data), wake, err
		})
	})
	if hub.Deleted(err) || errors.Is(err, errRunShown) {
		return nil // regular ends
	}
	if fault.CodeOf(err) == fault.SlowReader || errors.Is(err, sse.ErrSlow) {
		s.counts.cutOff.Add(1)
		s.slowReaders.Warn(s.log, time.Now(), "slow reader cut off", "peer", c.RemoteAddr, "path", c.URL.Path, "error", err)
	}
	if c.Context().Err() == nil {
		s.explain(stream, err)
	}
	panic(http.ErrAbortHandler) // leave out the final chunk, which the client takes for a deletion
}

// mayWrite returns the check before each write of a stream: its key must still be
// valid, and its share of all answers must have space.
func (s *Server) mayWrite(c *call) func(context.Context, int) (func(), error) {
	return func(ctx context.Context, size int) (func(), error) {
		if !s.cfg.Stands(c.Request) {
			return nil, fault.New(fault.AuthFailed, "the key was revoked")
		}
		return c.answer.Release, c.answer.Wait(ctx, int64(size), s.cfg.Limits.Write)
	}
}

// explain sends a reader the reason why the server ends its stream.
func (s *Server) explain(stream *sse.Stream, err error) {
	if code := fault.CodeOf(err); s.ctx.Err() != nil || code == fault.SlowReader || code == fault.AuthFailed || errors.Is(err, sse.ErrSlow) {
		return
	}
	e := &wire.Event{Payload: wire.MessageTurnError{Message: "the stream ended: " + err.Error()}}
	if data, err := e.Append(nil, wire.Branches); err == nil {
		stream.Event("", "", data)
		_ = stream.Flush(s.ctx) // the stream ends in any case
	}
}

// attend registers the identity of an agent's key as a reader at the hub, until
// leave is called.
func (s *Server) attend(who Who, address string) (leave func()) {
	id := ""
	if who.Role == Agent {
		id, _ = s.hub.FindAgent(who.Agent)
	}
	return s.hub.Attend(id, "hpd", address)
}

// seat counts a stream, or returns an error if there are too many.
func (s *Server) seat() (release func(), err error) {
	select {
	case s.streams <- struct{}{}:
		return func() { <-s.streams }, nil
	default:
		return nil, fault.New(fault.Unavailable, "%d streams are open, which is the limit (hpd.limits.streams); try again", cap(s.streams))
	}
}

// during returns a context that ends with the request or when the server drains.
func (s *Server) during(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(s.draining, cancel)
	return ctx, func() { stop(); cancel() }
}
