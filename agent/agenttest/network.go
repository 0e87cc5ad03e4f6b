// Package agenttest is a small in-memory hub for tests and examples of agents.
// It takes the same steps in the same order as a real hub (judge, log, fold,
// deliver, close), but stores nothing durably.
package agenttest

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/parley-hub/parley/adapter"
	"github.com/parley-hub/parley/agent"
	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/task"
)

// Network is an in-memory hub.
type Network struct {
	adapters []channel.Adapter

	mu       sync.Mutex
	order    []*Link // as they joined
	rooms    []*room
	tasks    []*task.Task
	minted   int
	changed  chan struct{} // closed and replaced whenever anything happens
	failures []Failure
	events   []TaskEvent
	observed []agent.Observation
	saved    map[string][]byte
	skills   map[string]string
}

// Failure is a turn that an agent reported as failed.
type Failure struct {
	Channel, Agent, Envelope, Error string
}

// TaskEvent is what was fired for a task.
type TaskEvent struct {
	Task, Kind, Payload string
}

type room struct {
	meta    *channel.Metadata
	adapter channel.Adapter
	state   channel.State
	log     []*envelope.Envelope
}

// New makes a network with the adapters that Parley ships.
func New() *Network {
	return &Network{
		adapters: adapter.All(), changed: make(chan struct{}),
		saved: map[string][]byte{}, skills: map[string]string{},
	}
}

// Join registers an identity and returns its link.
func (n *Network) Join(name string) *Link {
	return n.JoinAs(agent.Peer{Name: name})
}

// JoinAs registers an identity with a resume.
func (n *Network) JoinAs(p agent.Peer) *Link {
	n.mu.Lock()
	defer n.mu.Unlock()
	p.ID = "id-" + p.Name
	l := &Link{net: n, peer: &p}
	n.order = append(n.order, l)
	return l
}

// SetSkill stores a skill document.
func (n *Network) SetSkill(agentID, text string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.skills[agentID] = text
}

// Failures returns the turns reported as failed so far.
func (n *Network) Failures() []Failure {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.failures)
}

// TaskEvents returns the task events fired so far.
func (n *Network) TaskEvents() []TaskEvent {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.events)
}

// Observations returns the observations recorded so far.
func (n *Network) Observations() []agent.Observation {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.observed)
}

// State returns a channel's folded state.
func (n *Network) State(channelID string) channel.State {
	n.mu.Lock()
	defer n.mu.Unlock()
	r, err := n.room(channelID)
	if err != nil {
		return nil
	}
	return r.state
}

// Wait returns when the condition holds. It checks the condition after every
// change.
func (n *Network) Wait(ctx context.Context, condition func() bool) error {
	for {
		n.mu.Lock()
		changed := n.changed
		n.mu.Unlock()
		if condition() {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (n *Network) touch() {
	close(n.changed)
	n.changed = make(chan struct{})
}

func (n *Network) room(id string) (*room, error) {
	for _, r := range n.rooms {
		if r.meta.ID == id {
			return r, nil
		}
	}
	return nil, fault.New(fault.NotFound, "channel not found: '%s'", id).Because(fault.NoChannel)
}

func (n *Network) mint(kind string) string {
	n.minted++
	return fmt.Sprintf("%s-%04d", kind, n.minted)
}

// open creates a channel and sends its invites.
func (n *Network) open(creator string, o agent.Opening) (*room, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	i := slices.IndexFunc(n.adapters, func(a channel.Adapter) bool { return a.Manifest().Type == o.Type })
	if i < 0 {
		return nil, fault.New(fault.NotFound, "no adapter for '%s'", o.Type)
	}
	manifest := n.adapters[i].Manifest()
	now := time.Now().UTC()
	m := &channel.Metadata{ID: n.mint("channel"), Manifest: &manifest, Creator: creator, State: channel.Pending, CreatedAt: now, Knobs: o.Knobs}
	ids := o.Participants
	if !slices.Contains(ids, creator) {
		ids = slices.Insert(slices.Clone(ids), 0, creator)
	}
	for order, id := range ids {
		role := channel.Member
		switch {
		case id == creator:
			role = channel.Initiator
		case len(ids) == 2:
			role = channel.Respondent
		}
		m.Participants = append(m.Participants, channel.Participant{Agent: id, Role: role, Order: order, JoinedAt: now})
	}
	m.PendingAcks = m.Others(creator)
	if o.Intent != "" {
		m.Labels = map[string]string{"intent": o.Intent}
	}
	r := &room{meta: m, adapter: n.adapters[i]}
	if err := r.adapter.ValidateCreate(m); err != nil {
		return nil, err
	}
	var err error
	if r.state, err = r.adapter.Initial(m); err != nil {
		return nil, err
	}
	n.rooms = append(n.rooms, r)
	for _, id := range m.PendingAcks {
		n.append(r, &envelope.Envelope{Sender: creator, Type: envelope.TypeInvite, Audience: []string{id}, Data: []byte(`{}`)})
	}
	return r, nil
}

// admit judges, logs, folds, delivers and closes.
func (n *Network) admit(e *envelope.Envelope) (string, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	r, err := n.room(e.Channel)
	if err != nil {
		return "", err
	}
	switch {
	case r.meta.State.Terminal():
		return "", fault.New(fault.Protocol, "channel '%s' is %s", e.Channel, r.meta.State)
	case r.meta.State != channel.Active && !envelope.IsProtocol(e.Type):
		return "", fault.New(fault.Protocol, "channel '%s' is not active", e.Channel)
	}
	if e.Key != "" {
		for _, old := range r.log {
			if old.Key == e.Key && old.Sender == e.Sender {
				return old.ID, nil
			}
		}
	}
	if err := r.adapter.ValidateSend(r.meta, r.state, e); err != nil {
		return "", err
	}
	logged := n.append(r, e)
	switch e.Type {
	case envelope.TypeInviteAck:
		r.meta.PendingAcks = slices.DeleteFunc(r.meta.PendingAcks, func(id string) bool { return id == e.Sender })
		if len(r.meta.PendingAcks) == 0 && r.meta.State == channel.Pending {
			r.meta.State = channel.Active
			n.append(r, &envelope.Envelope{Sender: r.meta.Creator, Type: envelope.TypeOpened, Audience: r.meta.IDs(), Data: []byte(`{}`)})
		}
	case envelope.TypeInviteReject:
		n.end(r, "invite_rejected")
	}
	if effects := r.adapter.OnAccepted(r.meta, r.state, logged); effects.Next != channel.Unset {
		n.end(r, effects.Reason)
	}
	return logged.ID, nil
}

func (n *Network) end(r *room, reason string) {
	if r.meta.State.Terminal() {
		return
	}
	r.meta.State, r.meta.CloseReason, r.meta.ClosedAt = channel.Closed, reason, time.Now().UTC()
	n.append(r, &envelope.Envelope{
		Sender: r.meta.Creator, Type: envelope.TypeClosed, Audience: r.meta.IDs(),
		Data: fmt.Appendf(nil, `{"reason":%q,"channel_id":%q}`, reason, r.meta.ID),
	})
}

// append stamps, logs, folds and delivers.
func (n *Network) append(r *room, e *envelope.Envelope) *envelope.Envelope {
	e = e.Clone()
	e.Channel, e.Seq, e.ID, e.CreatedAt = r.meta.ID, uint64(len(r.log)+1), n.mint("e"), time.Now().UTC()
	r.log = append(r.log, e)
	r.state = r.adapter.Fold(r.state, e)
	if e.Type != envelope.TypeInviteAck && e.Type != envelope.TypeInviteReject {
		for _, id := range r.adapter.Recipients(r.meta, r.state, r.meta.Members(), e) {
			for _, l := range n.order {
				if l.peer.ID == id {
					l.unread = append(l.unread, e)
				}
			}
		}
	}
	n.touch()
	return e
}
