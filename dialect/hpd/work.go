package hpd

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/identity"
	"github.com/parley-hub/parley/internal/sse"
)

// worker is one connection of a remote producer.
type worker struct {
	// first are the frames that it gets on connecting: all open runs. They are not
	// bounded, because the server holds the runs anyway.
	first  []workFrame
	joined bool // first is complete; the lock of the pools guards both until first is read
	frames chan workFrame
	gone   chan struct{} // closed when it is disconnected
	once   sync.Once
	most   int64        // bytes that may wait
	queued atomic.Int64 // bytes that wait
}

type workFrame struct {
	name string
	data []byte
}

func (w *worker) cutOff() { w.once.Do(func() { close(w.gone) }) }

// send queues a frame. A producer that does not read is disconnected, and gets the
// frames again when it reconnects.
func (w *worker) send(name string, body any) {
	data, err := marshal(body)
	if err != nil {
		return
	}
	if !w.joined {
		w.first = append(w.first, workFrame{name, data})
		return
	}
	if w.queued.Add(int64(len(data))) > w.most {
		w.cutOff()
		return
	}
	select {
	case w.frames <- workFrame{name, data}:
	case <-w.gone:
	default:
		w.cutOff()
	}
}

// mayProduce returns an error if a caller may not act for an agent.
func mayProduce(who Who, agent string) error {
	if who.Role == Operator || who.Role == Agent && who.Agent == agent {
		return nil
	}
	return fault.New(fault.AccessDenied, "this needs the key of agent '%.100s', or an operator's", agent)
}

// printable reports whether a name in a path can be registered and shown.
func printable(name string) bool {
	return utf8.ValidString(name) && len(name) <= 200 && !strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) })
}

// getWork streams the work of an agent to one of its producers, until the producer
// disconnects.
func (s *Server) getWork(c *call) error {
	if err := mayProduce(c.who, c.agent); err != nil {
		return err
	}
	if s.cfg.Producers[c.agent] != nil {
		return fault.New(fault.Conflict, "agent '%s' has a producer inside the hub; connect under another name", c.agent)
	}
	if !printable(c.agent) {
		return fault.New(fault.Invalid, "agent id %.60q is not valid; it has 1 to 200 printable characters", c.agent)
	}
	if c.Method == http.MethodHead { // it does not read, so it gets no work
		return c.empty(http.StatusOK)
	}
	// A client that sees the registered name also finds a producer that is still
	// connecting.
	arrived := s.pools.arrive(c.agent)
	defer arrived()
	agent, err := s.ids.of(c.Context(), c.agent, identity.Agent)
	if err == nil {
		err = s.remember(c.Context(), agent)
	}
	if err != nil {
		return err
	}
	select {
	case <-s.recovery.seen:
	case <-c.Context().Done():
		return nil
	}
	release, err := s.seat()
	if err != nil {
		return err
	}
	defer release()
	ctx, cancel := s.during(c.Context())
	defer cancel()
	// The producer is registered before it gets the response, so that an input that
	// follows finds it.
	w := &worker{frames: make(chan workFrame, s.cfg.Limits.Work), gone: make(chan struct{}), most: int64(s.cfg.Limits.BehindBytes)}
	s.join(agent, w)
	arrived()
	defer s.leave(agent, w)
	defer w.cutOff()
	c.w.Header().Set("Cache-Control", "no-cache")
	stream := sse.Start(c.w, c.Request, sse.Config{Write: s.cfg.Limits.Write, KeepAlive: s.cfg.Limits.KeepAlive, KeepConnection: true, Before: s.mayWrite(c)})
	defer stream.End()
	var pump sync.WaitGroup
	defer pump.Wait()
	defer cancel()
	pending := make(chan workFrame)
	pump.Go(func() {
		pass := func(f workFrame) {
			select {
			case pending <- f:
			case <-w.gone:
			case <-ctx.Done():
			}
		}
		for _, f := range w.first {
			pass(f)
		}
		w.first = nil
		for {
			select {
			case f := <-w.frames:
				w.queued.Add(-int64(len(f.data)))
				pass(f)
			case <-w.gone:
				cancel()
				return
			case <-ctx.Done():
				return
			}
		}
	})
	err = s.pumpWork(ctx, stream, pending)
	if c.Context().Err() == nil && err != nil {
		panic(http.ErrAbortHandler)
	}
	return nil
}

// pumpWork writes frames as they arrive.
func (s *Server) pumpWork(ctx context.Context, stream *sse.Stream, frames <-chan workFrame) error {
	silence := time.NewTicker(s.cfg.Limits.KeepAlive)
	defer silence.Stop()
	for {
		select {
		case f := <-frames:
			stream.Event("", f.name, f.data)
		case <-silence.C:
			stream.Comment("keepalive")
		case <-ctx.Done():
			return ctx.Err()
		}
		if err := stream.Flush(ctx); err != nil {
			return err
		}
	}
}
