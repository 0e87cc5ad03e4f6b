package agh

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/parley-hub/parley/adapter/direct"
	"github.com/parley-hub/parley/adapter/thread"
	"github.com/parley-hub/parley/dialect/agh/wire"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub"
	"github.com/parley-hub/parley/internal/sse"
	"github.com/parley-hub/parley/journal"
)

func (c *call) threadLive(r *netChannel) error {
	id := c.PathValue("thread_id")
	return c.live(r, thread.Type, id, threadName(r.channel, id), func() error { return c.sees(r) })
}

func (c *call) directLive() error {
	r, row, err := c.direct()
	if err != nil {
		return err
	}
	id := c.PathValue("direct_id")
	return c.live(r, direct.Type, id, id, func() error { return c.seesDirect(r, row.Peers) })
}

// live streams the messages of a conversation until the reader disconnects or loses
// access, or the conversation is deleted.
func (c *call) live(r *netChannel, kind, id, name string, still func() error) error {
	channelID, err := c.s.hub.Named(c.Context(), r.space.home.ID, kind, name)
	if fault.CodeOf(err) == fault.NotFound {
		return fault.New(fault.NotFound, "the channel %q has no %s %.150q", r.channel, kind, id)
	}
	if err != nil {
		return err
	}
	o := hub.FollowOptions{}
	if err := c.resume(r, kind, id, channelID, &o); err != nil {
		return err
	}
	release, err := c.s.seat()
	if err != nil {
		return err
	}
	defer release()
	ctx, cancel := context.WithCancel(c.Context())
	defer cancel()
	defer context.AfterFunc(c.s.draining, cancel)()
	f, err := c.s.hub.Follow(ctx, channelID, o)
	var gap *hub.Gap
	if errors.As(err, &gap) {
		f, err = c.s.hub.Follow(ctx, channelID, hub.FollowOptions{After: gap.Head})
	}
	if err != nil {
		return err
	}
	defer f.Close()
	if c.Method == http.MethodHead {
		return nil
	}
	if c.who.Role == Agent {
		defer c.s.hub.Attend(c.agentID(), "agh", c.RemoteAddr)()
	}
	c.follow(ctx, r, f, gap, still)
	return nil
}

// gapBody is the data of a gap event.
type gapBody struct {
	Reason string `json:"reason"`
	Head   string `json:"head"`
}

func (c *call) follow(ctx context.Context, r *netChannel, f *hub.Follower, gap *hub.Gap, still func() error) {
	stream := sse.Start(c.w, c.Request, sse.Config{
		Write: c.s.cfg.Limits.Write, KeepAlive: c.s.cfg.Limits.KeepAlive,
		Before: func(ctx context.Context, size int) (func(), error) {
			if !c.s.cfg.Stands(c.Request) {
				return nil, fault.New(fault.AuthFailed, "the key was revoked")
			}
			if err := still(); err != nil {
				return nil, err
			}
			return c.share.Release, c.share.Wait(ctx, int64(size), c.s.cfg.Limits.Write)
		},
	})
	defer stream.End()
	tellGap := func(g *hub.Gap) {
		if text, err := json.Marshal(gapBody{g.Reason, g.Head.String()}); err == nil {
			stream.Event(g.Head.String(), "gap", text)
		}
	}
	if gap != nil {
		tellGap(gap)
	}
	err := stream.Run(ctx, func() (<-chan struct{}, error) {
		return c.share.Step(stream.Buffered(), func() (int, <-chan struct{}, error) {
			ev, wake, err := f.TryNext(ctx)
			if err != nil || wake != nil {
				return 0, wake, err
			}
			e, data, err := wire.Message(ev.Envelope)
			if err != nil {
				return len(ev.Envelope.Data), nil, nil // not of this dialect
			}
			text, err := json.Marshal(r.showMessage(e, data, ev.Envelope))
			if err == nil {
				stream.Event(ev.Position.String(), "message", text)
			}
			return len(text), nil, err
		})
	})
	if errors.Is(err, sse.ErrSlow) || fault.CodeOf(err) == fault.SlowReader {
		c.s.counts.slow.Add(1)
		c.s.slowReaders.Warn(c.s.cfg.Log, time.Now(), "slow reader cut off", "peer", c.RemoteAddr, "path", c.URL.Path, "error", err)
	}
	if dropped, ok := errors.AsType[*hub.Gap](err); ok {
		tellGap(dropped)
		_ = stream.Flush(ctx) // the stream ends in any case
	}
}

// resume reads where a stream begins: at the start of the conversation, after a
// position, after a message, or now.
func (c *call) resume(r *netChannel, kind, id, channelID string, o *hub.FollowOptions) error {
	after := sse.LastEventID(c.Request)
	if after == "" {
		after = c.URL.Query().Get("after")
	}
	switch after {
	case "":
		return nil
	case "now":
		o.FromNow = true
		return nil
	}
	position, err := journal.ParsePosition(after)
	if err == nil {
		o.After = position
		return nil
	}
	found, err := r.find(c.Context(), kind, id, after)
	if err != nil {
		return err
	}
	if len(found) == 0 {
		return fault.New(fault.NotFound, "`after` %.150q is neither a position of this stream nor one of its messages", after)
	}
	head, err := c.s.hub.Position(c.Context(), channelID)
	if err != nil {
		return err
	}
	head.Seq = found[0].record.Seq
	o.After = head
	return nil
}

// seat counts a stream.
func (s *Server) seat() (release func(), err error) {
	select {
	case s.streams <- struct{}{}:
		return func() { <-s.streams }, nil
	default:
		return nil, fault.New(fault.Unavailable, "%d streams are open, which is the limit (agh.limits.streams); try again", cap(s.streams))
	}
}
