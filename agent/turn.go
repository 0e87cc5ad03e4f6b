package agent

import (
	"context"
	"fmt"
	"slices"

	"github.com/parley-hub/parley/adapter/turn"
	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/view"
)

// Turn is the context of one round: the channel, what is being answered, and
// the state when the round began. Outside a channel only Agent is set.
type Turn struct {
	Agent   *Agent
	Channel *channel.Metadata
	Trigger *envelope.Envelope
	// State is the channel's folded state as of the trigger.
	State  channel.State
	driver turn.Driver
	key    int // the turn's number, for the keys of its calls
	names  map[string]string

	task *TaskRun // the innermost that has not ended
	over bool     // the round has ended: tasks no longer post
}

// Depth returns how many delegations led here.
func (t *Turn) Depth() int {
	if t == nil || t.Trigger == nil {
		return 0
	}
	return t.Trigger.Depth
}

// Name returns a participant's name, or its id where it has none.
func (t *Turn) Name(id string) string {
	if t == nil || t.names[id] == "" {
		return id
	}
	return t.names[id]
}

// takeTurn answers an envelope if it is this agent's turn.
func (a *Agent) takeTurn(ctx context.Context, e *envelope.Envelope) (err error) {
	defer rescue(&err)
	m, err := a.link.Channel(ctx, e.Channel)
	if err != nil || m.State != channel.Active {
		return err
	}
	// Redelivered after the answer was posted: nothing is left to do.
	if answered, err := a.link.Answer(ctx, e.Channel, e.ID); err != nil || answered != nil {
		return err
	}
	if ok, err := a.link.CanSend(ctx, e.Channel, envelope.TypeText); err != nil || !ok {
		return err
	}
	t, p, err := a.prepare(ctx, m, e)
	if err != nil || p == nil {
		return err
	}
	round, err := a.runTask(ctx, t, p)
	if err != nil {
		return err
	}
	return a.answer(ctx, t, round)
}

// prepare reads the log and makes the prompt; without one there is no turn.
func (a *Agent) prepare(ctx context.Context, m *channel.Metadata, e *envelope.Envelope) (*Turn, *Prompt, error) {
	governs, err := a.adapterOf(m)
	if err != nil {
		return nil, nil, err
	}
	log, err := a.link.Log(ctx, m.ID)
	if err != nil {
		return nil, nil, err
	}
	at := slices.IndexFunc(log, func(logged *envelope.Envelope) bool { return logged.ID == e.ID })
	before, through := log, log
	if at >= 0 {
		before, through = log[:at], log[:at+1]
	}
	now, err := fold(governs, m, log)
	if err != nil || stale(governs, m, now, log, at) {
		return nil, nil, err
	}
	t := &Turn{Agent: a, Channel: m, Trigger: e, driver: turn.For(governs)}
	if t.State, err = fold(governs, m, through); err != nil {
		return nil, nil, err
	}
	t.key = int(e.Seq)
	if n, counted := t.driver.Turns(t.State); counted {
		t.key = n
	}
	if t.names, err = a.link.Names(ctx, speakers(m, through)); err != nil {
		return nil, nil, err
	}
	input := t.input(governs, e)
	if input == "" {
		return nil, nil, nil
	}
	p := &Prompt{System: a.system(), Messages: messages(t.project(governs, before)), Tools: slices.Clone(a.tools), Turn: t}
	p.Messages = append(p.Messages, Message{Role: User, Text: input})
	p.Tools = append(p.Tools, channelTools(t.driver.Tools(m, now, a.Self().ID))...)
	if a.opts.RoutingTools {
		p.Tools = append(p.Tools, routingTools(now, p.Tools)...)
	}
	return t, p, nil
}

// stale reports whether this agent's turn was triggered by a later envelope: that one
// is delivered too, and is the one to answer.
func stale(governs channel.Adapter, m *channel.Metadata, s channel.State, log []*envelope.Envelope, at int) bool {
	expected, ok := governs.Expected(m, s)
	if !ok || expected.Trigger == "" || at < 0 {
		return false
	}
	trigger := slices.IndexFunc(log, func(e *envelope.Envelope) bool { return e.ID == expected.Trigger })
	return trigger > at
}

// input returns the input of the model: the trigger as the view shows it, or as
// the adapter reads it where the view shows nothing.
func (t *Turn) input(governs channel.Adapter, e *envelope.Envelope) string {
	shown := t.project(governs, []*envelope.Envelope{e})
	if len(shown) == 0 || shown[0].Content != nil && shown[0].Text == "" {
		return t.driver.Input(e)
	}
	return shown[0].Text
}

func (t *Turn) project(governs channel.Adapter, log []*envelope.Envelope) []view.Event {
	self := t.Agent.Self().ID
	return t.driver.View(t.Channel, self).Project(view.Input{
		Log:         log,
		Participant: self,
		Render:      t.driver,
		Visible: func(e *envelope.Envelope) bool {
			return governs.Visible(t.Channel, t.State, t.Channel.Members(), e, self)
		},
		Name: func(id string) string { return t.names[id] },
	})
}

// answer posts the result of the round as the reply to its trigger.
func (a *Agent) answer(ctx context.Context, t *Turn, round turn.Round) error {
	governs, err := a.adapterOf(t.Channel)
	if err != nil {
		return err
	}
	// Tools may have written context since, so the state is folded again.
	log, err := a.link.Log(ctx, t.Channel.ID)
	if err != nil {
		return err
	}
	state, err := fold(governs, t.Channel, log)
	if err != nil {
		return err
	}
	reply, err := t.driver.Reply(t.Channel, state, a.Self().ID, round, a.directory(ctx))
	if err != nil || reply == nil {
		return err
	}
	reply.Causation = t.Trigger.ID
	// Two processes of one agent may answer at once: the hub takes one.
	reply.Key = "reply:" + t.Trigger.ID
	_, err = a.link.Post(ctx, reply)
	return err
}

// directory resolves the names that handoffs give.
func (a *Agent) directory(ctx context.Context) turn.Directory {
	return func(name string) (string, bool) {
		peer, err := a.link.Peer(ctx, name)
		if err != nil {
			return "", false
		}
		return peer.ID, true
	}
}

func (a *Agent) system() string {
	self := a.Self()
	text := fmt.Sprintf("You are %s (agent_id: %s).", self.Name, self.ID)
	if a.opts.System != "" {
		text += "\n\n" + a.opts.System
	}
	return text
}

func fold(governs channel.Adapter, m *channel.Metadata, log []*envelope.Envelope) (channel.State, error) {
	s, err := governs.Initial(m)
	if err != nil {
		return nil, err
	}
	for _, e := range log {
		s = governs.Fold(s, e)
	}
	return s, nil
}

// speakers returns the ids whose names a view may show.
func speakers(m *channel.Metadata, log []*envelope.Envelope) []string {
	ids := m.IDs()
	seen := make(map[string]bool, len(ids))
	for _, id := range ids {
		seen[id] = true
	}
	for _, e := range log {
		if !seen[e.Sender] {
			seen[e.Sender] = true
			ids = append(ids, e.Sender)
		}
	}
	return ids
}
