package api

import (
	"context"
	"errors"
	"net/http"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub"
	"github.com/parley-hub/parley/internal/sse"
	"github.com/parley-hub/parley/journal"
	"github.com/parley-hub/parley/server/access"
)

// gapBody is the data of a gap event.
type gapBody struct {
	Reason string `json:"reason"`
	Head   string `json:"head"`
}

// viewer returns the agent as which the caller reads: with an agent's key that agent,
// otherwise the one that the request names; empty: everything is shown.
func (a *API) viewer(c *call) (string, error) {
	as, err := a.agentParam(c, "as")
	if err != nil || c.who.seesAll() {
		return as, err
	}
	return c.who.itself(as)
}

func (a *API) channelEvents(c *call) error {
	m, err := a.see(c)
	if err != nil {
		return err
	}
	as, err := a.viewer(c)
	if err != nil {
		return err
	}
	var after journal.Position
	if text := c.resume(); text != "" {
		if after, err = journal.ParsePosition(text); err != nil {
			return fault.Wrap(fault.Invalid, err, "%v", err)
		}
	}
	follow, err := c.wantsStream()
	if err != nil {
		return err
	}
	limit, err := c.limit(a.cfg.Limits)
	if err != nil {
		return err
	}
	if !follow {
		return a.readChannel(c, m, as, after, limit)
	}
	for _, name := range []string{"before", "around", "type", "sender", "match"} {
		if c.URL.Query().Has(name) {
			return fault.New(fault.Invalid, "%s selects of what is there; a stream has everything after a position", name)
		}
	}
	f, err := a.hub.Follow(c.Context(), m.ID, hub.FollowOptions{As: as, After: after})
	if gap, ok := errors.AsType[*hub.Gap](err); ok {
		return a.followAfterGap(c, m, as, gap)
	}
	if err != nil {
		return err
	}
	defer f.Close()
	return a.followChannel(c, f, nil)
}

// followAfterGap reports that the position is gone, and streams from the end.
func (a *API) followAfterGap(c *call, m *channel.Metadata, as string, gap *hub.Gap) error {
	f, err := a.hub.Follow(c.Context(), m.ID, hub.FollowOptions{As: as, After: gap.Head})
	if err != nil {
		return err
	}
	defer f.Close()
	return a.followChannel(c, f, &gapBody{Reason: gap.Reason, Head: gap.Head.String()})
}

// followChannel streams a channel. The frame of an envelope is made once for all live
// followers.
func (a *API) followChannel(c *call, f *hub.Follower, gap *gapBody) error {
	s, ctx, done, err := a.stream(c)
	if err != nil {
		return err
	}
	defer done()
	if gap != nil {
		if err := s.json(gap.Head, "gap", gap); err != nil {
			return nil
		}
	}
	err = s.Run(ctx, func() (<-chan struct{}, error) {
		return c.answer.Step(s.Buffered(), func() (read int, wake <-chan struct{}, err error) {
			ev, wake, err := f.TryNext(ctx)
			if err == nil && wake == nil {
				frame := ev.Shared.Bytes("v1", func() []byte { return frameOf(ev) })
				s.Append(frame)
				read = len(frame)
			}
			return read, wake, err
		})
	})
	if dropped, ok := errors.AsType[*hub.Gap](err); ok {
		_ = s.json(dropped.Head.String(), "gap", gapBody{Reason: dropped.Reason, Head: dropped.Head.String()})
		_ = s.Flush(ctx)
	}
	return nil // the answer has begun, so an error cannot be sent
}

func frameOf(ev hub.Event) []byte {
	position := ev.Position.String()
	data, err := appendEvent(nil, ev.Envelope, position)
	if err != nil {
		return nil // stored data is always valid JSON
	}
	name := "envelope"
	if ev.Live {
		name = "live"
	}
	return sse.AppendEvent(nil, position, name, data)
}

func (a *API) events(c *call) error {
	as, err := a.viewer(c)
	if err != nil {
		return err
	}
	o := hub.WideOptions{As: as, Type: c.URL.Query().Get("type")}
	o.NoPrivate = c.who.seesAll() && !c.who.Has(access.Operator)
	if text := c.resume(); text != "" {
		if o.After, err = hub.ParseWidePosition(text); err != nil {
			return err
		}
	}
	if o.Label, err = c.labels(); err != nil {
		return err
	}
	follow, err := c.wantsStream()
	if err != nil {
		return err
	}
	limit, err := c.limit(a.cfg.Limits)
	if err != nil {
		return err
	}
	if follow {
		return a.followEvents(c, o)
	}
	return a.readEvents(c, o, limit)
}

// readEvents answers with a page of what is durable now.
func (a *API) readEvents(c *call, o hub.WideOptions, limit bounds) error {
	now, err := a.hub.Now(c.Context())
	if err != nil {
		return err
	}
	f, err := a.hub.FollowAll(c.Context(), o)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := c.answer.Begin(c.Context(), a.cfg.Limits.Write); err != nil {
		return err
	}
	page := eventPage{Events: []jsontext.Value{}, Next: o.After.String()}
	for size := 0; len(page.Events) < limit.entries && size < limit.bytes; {
		ev, ok, err := f.NextUntil(c.Context(), now)
		if err != nil {
			return err
		}
		if !ok {
			page.Next = now.String()
			return c.write(http.StatusOK, page)
		}
		data, err := appendEvent(nil, ev.Envelope, ev.Position.String())
		c.answer.Read(len(data))
		if err == nil {
			err = c.answer.Hold(int64(len(data)))
		}
		if err != nil {
			return err
		}
		page.Events, page.Next = append(page.Events, data), ev.Position.String()
		size += len(data)
	}
	page.More = true
	return c.write(http.StatusOK, page)
}

// wideFrameOf makes an event's frame. If it is the same for all followers, it is made
// once.
func wideFrameOf(ev *hub.WideEvent) []byte {
	encode := func() []byte {
		position := ev.Position.String()
		data, err := appendEvent(nil, ev.Envelope, position)
		if err != nil {
			return nil // stored data is always valid JSON
		}
		return sse.AppendEvent(nil, position, "envelope", data)
	}
	if ev.Shared == nil {
		return encode()
	}
	return ev.Shared.Bytes("v1", encode)
}

// followEvents streams everything that the caller may see.
func (a *API) followEvents(c *call, o hub.WideOptions) error {
	follow := func(ctx context.Context, after hub.WidePosition) (*hub.WideFollower, error) {
		o.After = after
		return a.hub.FollowAll(ctx, o)
	}
	return acrossGaps(a, c, o.After, follow, func(ctx context.Context, s stream, f *hub.WideFollower) error {
		return s.Run(ctx, func() (<-chan struct{}, error) {
			return c.answer.Step(s.Buffered(), func() (read int, wake <-chan struct{}, err error) {
				ev, wake, err := f.TryNext(ctx)
				if err == nil && wake == nil {
					frame := wideFrameOf(&ev)
					s.Append(frame)
					read = len(frame)
				}
				return read, wake, err
			})
		})
	})
}
