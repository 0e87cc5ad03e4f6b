// Package embedded joins agents to a hub in the same process: an agent.Link
// without a connection. It checks nothing that the hub does not check, and trusts
// its caller with the name that it attaches.
//
// Runnable examples: example_test.go, which docs/go.md and go doc show.
package embedded

import (
	"context"

	"github.com/parley-hub/parley/agent"
	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub"
	"github.com/parley-hub/parley/identity"
	"github.com/parley-hub/parley/task"
)

// Link joins an identity to a hub in the same process. Safe for concurrent use.
type Link struct {
	hub   *hub.Hub
	self  agent.Identity
	inbox *hub.Inbox
}

var _ agent.Link = (*Link)(nil)

// Attach registers a name, or attaches to the identity that has the name, and
// receives what that identity has not acknowledged. The link ends with the hub,
// or when another link attaches under the name.
func Attach(ctx context.Context, h *hub.Hub, name string) (*Link, error) {
	id, ok := h.FindAgent(name)
	if !ok {
		p, err := h.Register(ctx, hub.Registration{Passport: &identity.Passport{Name: name, Auth: identity.Auth{Scheme: identity.SchemeNone}}})
		if err != nil {
			return nil, err
		}
		id = p.ID()
	}
	l := &Link{hub: h, self: agent.Identity{ID: id, Name: name}, inbox: hub.NewInbox(0)}
	return l, h.BindReplaying(ctx, id, l.inbox, "")
}

// Self returns the identity that the link acts for.
func (l *Link) Self() agent.Identity { return l.self }

// Receive waits for the next delivery.
func (l *Link) Receive(ctx context.Context) (*agent.Delivery, error) {
	n, err := l.inbox.Next(ctx)
	if err != nil {
		return nil, err
	}
	e := n.Envelope
	return &agent.Delivery{
		Envelope: e,
		Ack:      func(ctx context.Context) error { return l.hub.Ack(ctx, l.self.ID, e.Channel, e.ID) },
		Nack: func(_ context.Context, reason string) error {
			l.hub.Nack(l.self.ID, e.Channel, e.ID, reason)
			return nil
		},
	}, nil
}

func (l *Link) Channel(ctx context.Context, id string) (*channel.Metadata, error) {
	return l.hub.Channel(ctx, id)
}

func (l *Link) ListChannels(ctx context.Context, limit int) ([]*channel.Metadata, error) {
	list, _, err := l.hub.Channels(ctx, hub.ListOptions{Agent: l.self.ID, Limit: limit})
	return list, err
}

func (l *Link) OpenChannel(ctx context.Context, o agent.Opening) (*channel.Metadata, error) {
	opening := hub.Opening{
		Creator: l.self.ID, Type: o.Type, Version: o.Version, Participants: o.Participants,
		Knobs: o.Knobs, Labels: o.Labels, Intent: o.Intent,
	}
	if o.TTL != "" {
		ttl := identity.TextTTL(o.TTL)
		opening.TTL = &ttl
	}
	opened, err := l.hub.Open(ctx, opening)
	return opened.Metadata, err
}

func (l *Link) CloseChannel(ctx context.Context, id, reason string) (*channel.Metadata, error) {
	return l.hub.CloseChannel(ctx, id, reason)
}

func (l *Link) Log(ctx context.Context, channelID string) ([]*envelope.Envelope, error) {
	var list []*envelope.Envelope
	for e, err := range l.hub.Log(ctx, channelID, 0, 0) {
		if err != nil {
			return nil, err
		}
		list = append(list, e)
	}
	return list, nil
}

func (l *Link) Answer(ctx context.Context, channelID, cause string) (*envelope.Envelope, error) {
	return l.hub.AnswerTo(ctx, channelID, l.self.ID, cause)
}

func (l *Link) CanSend(ctx context.Context, channelID, eventType string) (bool, error) {
	return l.hub.CanSend(ctx, channelID, l.self.ID, eventType)
}

func (l *Link) Post(ctx context.Context, e *envelope.Envelope) (string, error) {
	return l.hub.Post(ctx, e.Clone(), l.caller())
}

// caller allows the link to act for its own identity only.
func (l *Link) caller() *hub.Caller {
	return &hub.Caller{Agents: []string{l.self.ID}}
}

func (l *Link) PendingTurns(ctx context.Context) ([]agent.PendingTurn, error) {
	turns, err := l.hub.Turns(ctx, l.self.ID)
	list := make([]agent.PendingTurn, len(turns))
	for i, t := range turns {
		list[i] = agent.PendingTurn{Channel: t.Channel, Trigger: t.Trigger, ExpectedAt: t.ExpectedAt}
	}
	return list, err
}

func (l *Link) ReportTurnFailure(ctx context.Context, channelID, envelopeID string, cause error) error {
	return l.hub.ReportTurnFailure(ctx, channelID, l.self.ID, envelopeID, string(fault.CodeOf(cause)), cause.Error())
}

func (l *Link) Names(_ context.Context, ids []string) (map[string]string, error) {
	names := make(map[string]string, len(ids))
	for _, id := range ids {
		names[id] = l.hub.Name(id)
	}
	return names, nil
}

func (l *Link) Peer(ctx context.Context, nameOrID string) (*agent.Peer, error) {
	p, err := l.hub.Agent(nameOrID)
	if err != nil {
		return nil, err
	}
	return l.peerOf(ctx, p)
}

func (l *Link) Peers(ctx context.Context, q agent.PeerQuery) ([]*agent.Peer, error) {
	found, err := l.hub.Agents(ctx, hub.AgentQuery{Query: identity.Query{Capability: q.Capability, Text: q.Text}, Limit: 1 << 30})
	if err != nil {
		return nil, err
	}
	var list []*agent.Peer
	for _, p := range found {
		peer, err := l.peerOf(ctx, p)
		if err != nil {
			return nil, err
		}
		list = append(list, peer)
	}
	return list, nil
}

func (l *Link) Skill(ctx context.Context, agentID string) (string, error) {
	p, err := l.hub.AgentByID(agentID)
	if err != nil {
		return "", err
	}
	d, err := l.hub.Details(ctx, agentID)
	if err != nil {
		return "", err
	}
	if d.Skill != nil {
		return *d.Skill, nil
	}
	return identity.FallbackSkill(p.Passport, d.Resume), nil
}

func (l *Link) peerOf(ctx context.Context, p hub.Profile) (*agent.Peer, error) {
	d, err := l.hub.Details(ctx, p.ID())
	if err != nil {
		return nil, err
	}
	peer := &agent.Peer{
		ID: p.ID(), Name: p.Passport.Name, Owner: p.Passport.Owner,
		Summary: d.Resume.Summary, Capabilities: d.Resume.ClaimedCapabilities, Domains: d.Resume.Domains,
		Observed: map[string]agent.Observed{},
	}
	for capability, o := range d.Resume.Observed {
		peer.Observed[capability] = agent.Observed{N: o.N, Completed: o.Completed, Failed: o.Failed, Expired: o.Expired}
	}
	return peer, nil
}

func (l *Link) Task(ctx context.Context, id string) (*task.Task, error) {
	return l.hub.Task(ctx, id)
}

func (l *Link) ListTasks(ctx context.Context, q agent.TaskQuery) ([]*task.Task, error) {
	found, _, err := l.hub.Tasks(ctx, hub.TaskQuery{Owner: q.Owner, Channel: q.Channel, State: q.State, Limit: q.Limit})
	return found, err
}

// The agent's runtime posts the events of its tasks itself, so the hub mirrors none.

func (l *Link) ObserveTask(ctx context.Context, t *task.Task) error {
	return l.hub.ObserveTask(ctx, *t, l.caller(), hub.MirrorOff)
}

func (l *Link) UpdateTask(ctx context.Context, u task.Update) error {
	return l.hub.UpdateTask(ctx, u, l.caller(), hub.MirrorOff)
}

func (l *Link) RecordObservation(ctx context.Context, o agent.Observation) error {
	ms := o.Latency.Milliseconds()
	return l.hub.RecordObservation(ctx, hub.Observation{Owner: l.self.ID, Capability: o.Capability, Outcome: identity.Outcome(o.Outcome), LatencyMS: &ms, Task: o.TaskID})
}

func (l *Link) FireTaskEvent(ctx context.Context, taskID, kind string, payload []byte) error {
	return l.hub.FireTaskEvent(ctx, taskID, kind, payload)
}

func (l *Link) Checkpoint(ctx context.Context, taskID string, state []byte) error {
	return l.hub.CheckpointTask(ctx, taskID, state, l.self.ID, l.caller())
}

func (l *Link) ReadCheckpoint(ctx context.Context, taskID string) ([]byte, error) {
	return l.hub.TaskCheckpoint(ctx, taskID, nil)
}
