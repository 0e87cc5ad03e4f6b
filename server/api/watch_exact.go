package api

import (
	"context"
	"errors"
	"sync"

	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub"
	"github.com/parley-hub/parley/journal"
	"github.com/parley-hub/parley/server/access"
)

// exactTopic is an exact topic that a watch follows.
type exactTopic struct {
	place string // where it begins
	run   func(ctx context.Context, put func(watchEvent) bool) error
	close func()
}

// runAll follows topics until one fails.
func runAll(ctx context.Context, topics []*exactTopic, put func(watchEvent) bool) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var all sync.WaitGroup
	for _, x := range topics {
		all.Go(func() {
			if err := x.run(ctx, put); err != nil {
				cancel(err)
			}
		})
	}
	<-ctx.Done()
	all.Wait()
	return context.Cause(ctx)
}

// openTopic begins to follow an exact topic that the caller may see.
func (a *API) openTopic(c *call, t topic) (*exactTopic, error) {
	switch t.kind {
	case "channel":
		return a.openChannelTopic(c, t)
	case "requests":
		return a.openRequestsTopic(c, t)
	default:
		return a.openAuditTopic(c, t)
	}
}

func gapEvent(t topic, reason, head string) watchEvent {
	data, err := encode(gapBody{Reason: reason, Head: head})
	if err != nil {
		data = []byte("{}") // strings always encode
	}
	return watchEvent{topic: t.name(), place: head, name: "gap", data: withTopic(t.name(), data)}
}

func (a *API) openChannelTopic(c *call, t topic) (*exactTopic, error) {
	m, err := a.as(c).Channel(c.Context(), t.id)
	if err != nil {
		return nil, err
	}
	o := hub.FollowOptions{FromNow: t.place == ""}
	if !c.who.seesAll() {
		o.As = c.who.id
	}
	if t.place != "" {
		if o.After, err = journal.ParsePosition(t.place); err != nil {
			return nil, fault.Wrap(fault.Invalid, err, "%v", err)
		}
	}
	f, err := a.hub.Follow(c.Context(), m.ID, o)
	var gap *hub.Gap
	if errors.As(err, &gap) {
		o.After = gap.Head
		f, err = a.hub.Follow(c.Context(), m.ID, o)
	}
	if err != nil {
		return nil, err
	}
	return &exactTopic{place: f.Position().String(), close: f.Close, run: func(ctx context.Context, put func(watchEvent) bool) error {
		if gap != nil && !put(gapEvent(t, gap.Reason, gap.Head.String())) {
			return nil
		}
		for {
			ev, err := f.Next(ctx)
			if dropped, ok := errors.AsType[*hub.Gap](err); ok {
				put(gapEvent(t, dropped.Reason, dropped.Head.String()))
				<-ctx.Done() // the other topics continue
				return nil
			}
			if err != nil {
				return err
			}
			place, name := ev.Position.String(), "envelope"
			if ev.Live {
				name = "live"
			}
			data := ev.Shared.Bytes("v1-watch", func() []byte {
				data, err := appendEvent(nil, ev.Envelope, place)
				if err != nil {
					return []byte("{}") // stored data is always valid JSON
				}
				return withTopic(t.name(), data)
			})
			if !put(watchEvent{t.name(), place, name, data}) {
				return nil
			}
		}
	}}, nil
}

func (a *API) openRequestsTopic(c *call, t topic) (*exactTopic, error) {
	q := hub.RequestQuery{}
	if !c.who.seesAll() {
		id, err := c.who.itself("")
		if err != nil {
			return nil, err
		}
		q.As = id
	}
	after, err := a.hub.Now(c.Context())
	if err == nil && t.place != "" {
		after, err = hub.ParseWidePosition(t.place)
	}
	if err != nil {
		return nil, err
	}
	f, err := a.hub.FollowRequests(c.Context(), q, after)
	if err != nil {
		return nil, err
	}
	x := &exactTopic{place: after.String(), close: func() { f.Close() }}
	x.run = func(ctx context.Context, put func(watchEvent) bool) error {
		for {
			ev, err := f.Next(ctx)
			if gap, ok := errors.AsType[*hub.WideGap](err); ok {
				if !put(gapEvent(t, gap.Reason, gap.Head.String())) {
					return nil
				}
				f.Close()
				if f, err = a.hub.FollowRequests(ctx, q, gap.Head); err != nil {
					return err
				}
				continue
			}
			if err != nil {
				return err
			}
			shown, err := a.shownRequest(ctx, ev.Request)
			if err != nil {
				return err
			}
			data, err := encode(shown)
			if err != nil {
				return err
			}
			if !put(watchEvent{t.name(), ev.Position.String(), "request", withTopic(t.name(), data)}) {
				return nil
			}
		}
	}
	return x, nil
}

func (a *API) openAuditTopic(c *call, t topic) (*exactTopic, error) {
	if !c.who.Has(access.Reader) {
		return nil, fault.New(fault.AccessDenied, "the audit takes a key of role operator or reader").Because(fault.NeedsRole)
	}
	after, err := a.hub.AuditHead(c.Context())
	if err != nil {
		return nil, err
	}
	if t.place != "" {
		if after, err = journal.ParseStorePosition(t.place); err != nil {
			return nil, fault.Wrap(fault.Invalid, err, "%v", err)
		}
	}
	return &exactTopic{place: after.String(), close: func() {}, run: func(ctx context.Context, put func(watchEvent) bool) error {
		for {
			err := a.runAudit(ctx, t, after, put)
			var gap *journal.GapError
			if !errors.As(err, &gap) {
				return err
			}
			if after, err = a.hub.AuditHead(ctx); err != nil {
				return err
			}
			if !put(gapEvent(t, gap.Reason.String(), after.String())) {
				return nil
			}
		}
	}}, nil
}

func (a *API) runAudit(ctx context.Context, t topic, after journal.StorePosition, put func(watchEvent) bool) error {
	for entry, err := range a.hub.FollowAudit(ctx, after) {
		if err != nil {
			return err
		}
		if !put(watchEvent{t.name(), entry.Position.String(), "audit", withTopic(t.name(), entry.Data)}) {
			return nil
		}
	}
	return nil
}
