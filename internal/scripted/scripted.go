// Package scripted is a participant without a model: it says its lines, one
// for each of its turns, over any link to a hub. Which line is next is read
// from the channel's log, so a participant that restarts goes on where it was.
package scripted

import (
	"context"
	"fmt"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/parley-hub/parley/adapter/turn"
	"github.com/parley-hub/parley/agent"
	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/internal/loop"
)

// Line is what a participant does in one turn.
type Line struct {
	Say     string         `json:"say" yaml:"say"`
	Set     map[string]any `json:"set" yaml:"set"`         // context variables, written before it speaks
	Delete  []string       `json:"delete" yaml:"delete"`   // removed before it speaks
	Handoff string         `json:"handoff" yaml:"handoff"` // to this name or id
	Tool    string         `json:"tool" yaml:"tool"`       // named in the packet, for tool_called rules
	Reason  string         `json:"reason" yaml:"reason"`   // of the handoff
	Finish  string         `json:"finish" yaml:"finish"`   // end the workflow with this reason
	Wait    time.Duration  `json:"wait" yaml:"wait"`       // to wait before it speaks
}

// Lines answers the n-th turn in a channel, counted from 0, to what was said.
// False leaves the turn to somebody else.
type Lines func(n int, heard string) (Line, bool)

// Script returns a fixed list of lines.
func Script(lines []Line) Lines {
	return func(n int, _ string) (Line, bool) {
		if n >= len(lines) {
			return Line{}, false
		}
		return lines[n], true
	}
}

// Echo repeats what it hears.
func Echo(_ int, heard string) (Line, bool) { return Line{Say: heard}, heard != "" }

// Participant plays lines on a link.
type Participant struct {
	Link  agent.Link
	Lines Lines
	// Heard, if set, is called with every delivery.
	Heard func(e *envelope.Envelope)
}

// Run plays until the link ends or ctx does. Each delivery is acked once it
// has been answered, so that one that was not is delivered again.
func (p *Participant) Run(ctx context.Context) error {
	for {
		d, err := p.Link.Receive(ctx)
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
		if p.Heard != nil {
			p.Heard(d.Envelope)
		}
		if err := p.answer(ctx, d.Envelope); err != nil {
			if ctx.Err() != nil {
				return nil // unanswered, so it is not acked
			}
			if fault.CodeOf(err) != fault.Protocol {
				return err
			}
			// Another participant spoke first: it is no longer this one's
			// turn.
		}
		if err := d.Ack(ctx); err != nil && ctx.Err() == nil {
			return err
		}
	}
}

func (p *Participant) answer(ctx context.Context, e *envelope.Envelope) error {
	switch e.Type {
	case envelope.TypeInvite:
		_, err := p.Link.Post(ctx, &envelope.Envelope{
			Channel: e.Channel, Sender: p.Link.Self().ID, Type: envelope.TypeInviteAck, Causation: e.ID, Data: []byte(`{}`),
		})
		return err
	case envelope.TypeText, envelope.TypePacket:
		return p.turn(ctx, e)
	}
	return nil
}

// turn answers an envelope, if it is this participant's to answer and it has
// not been answered.
func (p *Participant) turn(ctx context.Context, e *envelope.Envelope) error {
	m, err := p.Link.Channel(ctx, e.Channel)
	if err != nil || m.State != channel.Active {
		return err
	}
	if mine, err := p.mine(ctx, m, e); err != nil || !mine {
		return err
	}
	if done, err := p.Link.Answer(ctx, e.Channel, e.ID); err != nil || done != nil {
		return err
	}
	log, err := p.Link.Log(ctx, e.Channel)
	if err != nil {
		return err
	}
	line, ok := p.Lines(spoken(log, p.Link.Self().ID), heard(e))
	if !ok {
		return nil
	}
	if err := loop.Pause(ctx, line.Wait); err != nil {
		return err
	}
	return p.Speak(ctx, m, line, e.ID)
}

// mine reports whether an envelope is this participant's to answer: in a
// channel with turns it must be the trigger of its turn.
func (p *Participant) mine(ctx context.Context, m *channel.Metadata, e *envelope.Envelope) (bool, error) {
	if m.Manifest.Type == "conversation" {
		return p.Link.CanSend(ctx, e.Channel, envelope.TypeText)
	}
	turns, err := p.Link.PendingTurns(ctx)
	for _, t := range turns {
		if t.Channel == e.Channel && t.Trigger == e.ID {
			return true, err
		}
	}
	return false, err
}

// Speak plays one line in a channel, as the answer to an envelope or, with an
// empty cause, unasked.
func (p *Participant) Speak(ctx context.Context, m *channel.Metadata, line Line, cause string) error {
	self := p.Link.Self().ID
	if len(line.Set)+len(line.Delete) > 0 {
		data, err := json.Marshal(map[string]any{"set": line.Set, "delete": line.Delete}, json.Deterministic(true), json.FormatNilSliceAsNull(false), json.FormatNilMapAsNull(false))
		if err != nil {
			return fmt.Errorf("script: context: %w", err)
		}
		if _, err := p.Link.Post(ctx, &envelope.Envelope{Channel: m.ID, Sender: self, Type: envelope.TypeContextSet, Data: data}); err != nil {
			return err
		}
	}
	e, err := p.envelope(ctx, m, line)
	if err != nil {
		return err
	}
	e.Causation = cause
	_, err = p.Link.Post(ctx, e)
	return err
}

func (p *Participant) envelope(ctx context.Context, m *channel.Metadata, line Line) (*envelope.Envelope, error) {
	self := p.Link.Self().ID
	if m.Manifest.Type != "workflow" {
		return turn.BuildText(m.ID, self, line.Say, turn.Address{})
	}
	routing := turn.Routing{Kind: turn.KindText}
	switch {
	case line.Finish != "":
		routing = turn.Routing{Kind: turn.KindFinish, Tool: line.Tool, Reason: line.Finish}
	case line.Handoff != "":
		peer, err := p.Link.Peer(ctx, line.Handoff)
		if err != nil {
			return nil, err
		}
		routing = turn.Routing{Kind: turn.KindHandoff, Tool: line.Tool, Reason: line.Reason, Target: peer.ID}
	case line.Tool != "":
		routing = turn.Routing{Kind: turn.KindHandoff, Tool: line.Tool, Reason: line.Reason}
	}
	return routing.Envelope(m.ID, self, line.Say)
}

// spoken counts the turns that someone has taken.
func spoken(log []*envelope.Envelope, who string) (n int) {
	for _, e := range log {
		if e.Sender == who && (e.Type == envelope.TypeText || e.Type == envelope.TypePacket) {
			n++
		}
	}
	return n
}

// heard returns what an envelope says.
func heard(e *envelope.Envelope) string {
	var data struct {
		Text string `json:"text"`
		Body string `json:"body"`
	}
	if json.Unmarshal(e.Data, &data) != nil {
		return ""
	}
	return data.Text + data.Body
}
