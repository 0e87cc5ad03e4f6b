package hub

import (
	"context"

	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/task"
)

// Access is the hub as one caller has it: reads show what the caller may see,
// and acts are refused unless it may do them. Every surface asks here, so that
// all have the same rules:
//
//	                     sees               closes    acts for
//	an agent's caller    its channels,      its       its agents
//	                     their tasks,       channels
//	                     its own tasks
//	RoleReader           everything but     as above  as above
//	                     private channels
//	RoleOperator         everything         every     as above
//	Anyone, or nil       everything         every     everyone
//
// Refusals have the code fault.AccessDenied; a surface may say them in its own
// words.
type Access struct {
	hub *Hub
	by  *Caller
}

// As returns the hub as a caller has it.
func (h *Hub) As(by *Caller) Access { return Access{h, by} }

// MayActFor refuses to act for an agent that is not the caller's.
func (a Access) MayActFor(agent string) error {
	if a.by.MayActFor(agent) {
		return nil
	}
	return fault.New(fault.AccessDenied, "the caller may not act for '%.100s': it has not proved to be that agent", agent)
}

// SeesAll reports whether the caller sees everything.
func (a Access) SeesAll() bool { return a.by.seesAll() }

// Sees refuses a channel that the caller may not look into.
func (a Access) Sees(ctx context.Context, m *channel.Metadata) error {
	sees, err := a.sees(ctx, m)
	if err != nil || sees {
		return err
	}
	return fault.New(fault.AccessDenied, "no agent of the caller takes part in channel '%.100s'", m.ID)
}

func (a Access) sees(ctx context.Context, m *channel.Metadata) (bool, error) {
	if a.by.closesAll() || a.by.seesAll() && !a.hub.private(m) {
		return true, nil
	}
	return a.hub.takesPart(ctx, a.by, m)
}

// private reports whether only members and operators see a channel.
func (h *Hub) private(m *channel.Metadata) bool {
	p, ok := h.adapterOf(m.Manifest.Key()).(channel.Private)
	return ok && p.Private()
}

// Channel returns a channel that the caller may look into.
func (a Access) Channel(ctx context.Context, id string) (*channel.Metadata, error) {
	m, err := a.hub.Channel(ctx, id)
	if err != nil {
		return nil, err
	}
	if err := a.Sees(ctx, m); err != nil {
		return nil, err
	}
	return m, nil
}

// Channels lists channels that the caller may look into, as Hub.Channels does.
func (a Access) Channels(ctx context.Context, o ListOptions) (list []*channel.Metadata, next string, err error) {
	o.by = a.by
	return a.hub.Channels(ctx, o)
}

// ChannelPage lists channels that the caller may look into, as Hub.ChannelPage
// does.
func (a Access) ChannelPage(ctx context.Context, o ListOptions) (list []ListedChannel, next string, err error) {
	o.by = a.by
	return a.hub.ChannelPage(ctx, o)
}

// CloseChannel closes a channel that the caller may close.
func (a Access) CloseChannel(ctx context.Context, id, reason string) (*channel.Metadata, error) {
	m, err := a.Channel(ctx, id)
	if err != nil {
		return nil, err
	}
	closes := a.by.closesAll()
	if !closes {
		if closes, err = a.hub.takesPart(ctx, a.by, m); err != nil {
			return nil, err
		}
	}
	if !closes {
		return nil, fault.New(fault.AccessDenied, "closing a channel takes an operator or a participant")
	}
	return a.hub.closeChannel(ctx, id, reason, a.by)
}

// Unregister removes an identity that the caller may act for.
func (a Access) Unregister(ctx context.Context, id string) error {
	if err := a.MayActFor(id); err != nil {
		return err
	}
	return a.hub.unregister(ctx, id, a.by)
}

// Task returns a task that the caller may see: one of its agents', or one of a
// channel that it may look into.
func (a Access) Task(ctx context.Context, id string) (*task.Task, error) {
	t, err := a.hub.Task(ctx, id)
	if err != nil {
		return nil, err
	}
	if !a.seesTask(ctx)(t) {
		return nil, fault.New(fault.AccessDenied, "task '%.100s' belongs to '%s': only its owner and the participants of its channel may see it", id, t.Owner)
	}
	return t, nil
}

// Tasks lists tasks that the caller may see, as Hub.Tasks does.
func (a Access) Tasks(ctx context.Context, q TaskQuery) (list []*task.Task, next string, err error) {
	q.by = a.by
	return a.hub.Tasks(ctx, q)
}

// TaskPage lists tasks that the caller may see, as Hub.TaskPage does.
func (a Access) TaskPage(ctx context.Context, q TaskQuery) (list []ListedTask, next string, err error) {
	q.by = a.by
	return a.hub.TaskPage(ctx, q)
}

// seesTask tells which tasks the caller may see; each channel is looked up once.
func (a Access) seesTask(ctx context.Context) func(*task.Task) bool {
	sees := map[string]bool{"": false}
	return func(t *task.Task) bool {
		if a.by.seesAll() || a.by.is(t.Owner) {
			return true
		}
		in, known := sees[t.Channel]
		if !known {
			m, err := a.hub.Channel(ctx, t.Channel)
			if err == nil {
				in, err = a.sees(ctx, m)
			}
			in = in && err == nil
			sees[t.Channel] = in
		}
		return in
	}
}
