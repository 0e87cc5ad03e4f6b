package agent

import (
	"context"
	"fmt"
	"sync"

	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
)

// Agent answers for one identity. Make one with New and Run it.
type Agent struct {
	link  Link
	model Model
	opts  Options
	tools []*Tool
	lanes *lanes

	mu    sync.Mutex
	tasks map[string]*TaskRun // those that have not ended
}

// New makes an agent. It does nothing until Run.
func New(link Link, model Model, opts Options) *Agent {
	a := &Agent{link: link, model: model, opts: opts.withDefaults(), tasks: map[string]*TaskRun{}}
	a.lanes = newLanes(a.opts.Queue)
	a.tools = append(a.tools, opts.Tools...)
	if !opts.NoNetworkTools {
		a.tools = append(a.tools, NetworkTools()...)
	}
	return a
}

// Link returns the link to the agent's hub.
func (a *Agent) Link() Link { return a.link }

// Self returns who the agent is.
func (a *Agent) Self() Identity { return a.link.Self() }

// Run receives envelopes and answers them until ctx or the link ends; the end
// of ctx is not an error. It returns when every turn that it began has ended.
// At most one turn runs at a time for each channel, in the order of delivery.
func (a *Agent) Run(ctx context.Context) error {
	ctx, stop := context.WithCancel(ctx)
	defer a.lanes.wait()
	defer stop()
	for {
		if err := a.lanes.acquire(ctx); err != nil {
			return nil
		}
		d, err := a.link.Receive(ctx)
		if err != nil {
			a.lanes.release()
			if ctx.Err() != nil {
				return nil
			}
			return fmt.Errorf("agent: link of '%s' ended: %w", a.Self().Name, err)
		}
		if d.Envelope.Type == envelope.TypeTaskCancelRequest {
			a.noteCancel(d.Envelope) // here: its lane is busy with the very turn that runs the task
		}
		a.lanes.put(d, func(d *Delivery) { a.take(ctx, d) })
	}
}

// take handles one delivery and acks or nacks it. A delivery that the end of
// the process cut off gets neither, so that it is delivered again.
func (a *Agent) take(ctx context.Context, d *Delivery) {
	err := a.react(ctx, d.Envelope)
	if ctx.Err() != nil {
		return
	}
	if err != nil {
		a.opts.Log.WarnContext(ctx, "envelope not taken", "envelope", d.Envelope.ID, "channel", d.Envelope.Channel, "error", err)
		err = d.Nack(ctx, err.Error())
	} else {
		err = d.Ack(ctx)
	}
	if err != nil && ctx.Err() == nil {
		a.opts.Log.WarnContext(ctx, "receipt not sent", "envelope", d.Envelope.ID, "error", err)
	}
}

// react is the default handler, which runs after the application's own.
func (a *Agent) react(ctx context.Context, e *envelope.Envelope) (err error) {
	defer rescue(&err)
	if box := a.lanes.mailbox(e.Channel); box != nil {
		box.put(e) // a tool waits for it and handles it
		return nil
	}
	if a.opts.Handle != nil {
		if handled, err := a.opts.Handle(ctx, a, e); handled || err != nil {
			return err
		}
	}
	switch {
	case e.Type == envelope.TypeInvite:
		// An invite that cannot be acked times out at the hub.
		_, _ = a.link.Post(ctx, inviteAck(a.Self().ID, e))
	case envelope.IsProtocol(e.Type):
	default:
		a.attempt(ctx, e)
	}
	return nil
}

// attempt takes a turn and reports its failure. The envelope then counts as
// handled: a failed turn is not retried.
func (a *Agent) attempt(ctx context.Context, e *envelope.Envelope) {
	if err := a.takeTurn(ctx, e); err != nil && ctx.Err() == nil {
		a.failed(ctx, e, err)
	}
}

// failed reports a turn that ended without an answer.
func (a *Agent) failed(ctx context.Context, e *envelope.Envelope, err error) {
	a.opts.Log.WarnContext(ctx, "turn failed", "envelope", e.ID, "channel", e.Channel, "error", err)
	_ = a.link.ReportTurnFailure(ctx, e.Channel, e.ID, err) // nobody is left to tell
}

// rescue turns a panic of an application's code into an error.
func rescue(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("agent: panic: %v", p)
	}
}

func inviteAck(self string, invite *envelope.Envelope) *envelope.Envelope {
	return &envelope.Envelope{
		Channel: invite.Channel, Sender: self, Type: envelope.TypeInviteAck,
		Causation: invite.ID, Priority: envelope.Normal, Data: channelData(invite.Channel),
	}
}

// adapterOf finds the adapter that governs a channel.
func (a *Agent) adapterOf(m *channel.Metadata) (channel.Adapter, error) {
	for _, known := range a.opts.Adapters {
		if manifest := known.Manifest(); manifest.Key() == m.Manifest.Key() {
			return known, nil
		}
	}
	return nil, fault.New(fault.Protocol, "no registered adapter for '%s' version %d", m.Manifest.Type, m.Manifest.Version)
}

// ResumePendingTurns takes the turns that were left open, for example by a
// crash, as if their triggers had just arrived. It returns how many it took,
// after they have ended. It skips turns without a trigger, and those whose
// trigger was not addressed to this agent.
func (a *Agent) ResumePendingTurns(ctx context.Context) (int, error) {
	pending, err := a.link.PendingTurns(ctx)
	if err != nil {
		return 0, err
	}
	var fired sync.WaitGroup
	count := 0
	for _, p := range pending {
		if p.Trigger == "" {
			continue
		}
		log, err := a.link.Log(ctx, p.Channel)
		if err != nil {
			return count, err
		}
		for i, e := range log {
			if e.ID != p.Trigger {
				continue
			}
			if visible, err := a.sees(ctx, log[:i+1]); err != nil {
				a.failed(ctx, e, err)
				continue
			} else if !visible {
				continue
			}
			if err := a.lanes.acquire(ctx); err != nil {
				return count, err
			}
			fired.Add(1)
			count++
			a.lanes.put(&Delivery{Envelope: e}, func(d *Delivery) {
				defer fired.Done()
				if err := a.react(ctx, d.Envelope); err != nil {
					a.opts.Log.WarnContext(ctx, "turn not resumed", "envelope", e.ID, "error", err)
				}
			})
		}
	}
	fired.Wait()
	return count, nil
}

// sees reports whether the agent may see the last envelope of a log.
func (a *Agent) sees(ctx context.Context, log []*envelope.Envelope) (visible bool, err error) {
	defer rescue(&err)
	last := log[len(log)-1]
	m, err := a.link.Channel(ctx, last.Channel)
	if err != nil {
		return false, err
	}
	governs, err := a.adapterOf(m)
	if err != nil {
		return false, err
	}
	state, err := fold(governs, m, log)
	return err == nil && governs.Visible(m, state, m.Members(), last, a.Self().ID), err
}
