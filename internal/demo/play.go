package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	v1 "github.com/parley-hub/parley/client/v1"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/graph"
)

// outcome is a demo that has been played.
type outcome struct {
	channel string
	cast    *cast
}

// perform lets the incident run, kills the hub in the middle of network's turn
// and starts it again, and returns when the channel has closed.
func (a show) perform(ctx context.Context, hub *process, c *cast) (*outcome, error) {
	c.perform(ctx, a.approval(c))
	channel, err := c.open(ctx)
	if err != nil {
		return nil, err
	}
	shown, err := c.hub.Channel(ctx, channel)
	if err != nil {
		return nil, err
	}
	accident := make(chan error, 1)
	begun := false
	closed := false
	err = c.hub.FollowEvents(ctx, channel, v1.EventQuery{}, func(f v1.Frame) error {
		ev, err := v1.ParseEvent(f.Data)
		if err != nil {
			return err
		}
		if a.JSON {
			a.happened("envelope", map[string]any{"envelope": ev.Raw}, "")
		} else if !told[ev.Type] {
			a.say("%s", a.Line(shown, ev))
		}
		if ev.Type == envelope.TypeTaskStarted && ev.Sender == c.id("network") && !begun {
			begun = true
			go func() { accident <- a.accident(ctx, hub, c, channel) }()
		}
		if closed = ev.Type == envelope.TypeClosed; closed {
			return v1.ErrStop
		}
		return nil
	})
	if begun {
		if failed := <-accident; failed != nil {
			return nil, failed
		}
	}
	if err != nil || !closed {
		return nil, errors.Join(err, errors.New("the incident did not end"))
	}
	return &outcome{channel: channel, cast: c}, nil
}

// told are types of events for which the demo has words of its own.
var told = map[string]bool{
	envelope.TypeTaskStarted: true, envelope.TypeRequest: true, envelope.TypeAnswer: true,
}

// approval returns a function with which triage gets its last step approved.
func (a show) approval(c *cast) func(ctx context.Context, channel string) error {
	return func(ctx context.Context, channel string) error {
		a.happened("approval_asked", map[string]any{"by": c.id("triage"), "title": question}, "   … triage asks hana to approve: %s", question)
		answered, err := c.ask(ctx, channel)
		if err == nil {
			a.happened("approved", map[string]any{"by": c.id("hana"), "choice": answered.Outcome()}, "   … hana answers: %s. %s", answered.Outcome(), answered.Answer.Note)
		}
		return err
	}
}

// accident happens while network works on its turn: hana objects, and the hub
// is killed and started again.
func (a show) accident(ctx context.Context, hub *process, c *cast, channel string) error {
	said := make(chan error, 1)
	time.AfterFunc(slow, func() {
		a.happened("objection", map[string]any{"by": c.id("hana"), "text": correction},
			"   … network has taken the work; hana objects")
		said <- c.correct(ctx, channel)
	})
	time.Sleep(2 * slow)
	if err := hub.kill(); err != nil {
		return err
	}
	a.happened("hub_killed", nil, "   *** the hub was killed (SIGKILL) ***")
	time.Sleep(slow)
	if err := hub.start(ctx); err != nil {
		return err
	}
	a.happened("hub_back", nil, "   *** the hub is back; everyone resumes where they were ***")
	if err := c.awaitHana(ctx); err != nil {
		return err
	}
	close(c.resumed)
	return <-said
}

// checked is what the log proves.
type checked struct {
	length, lost, doubled int
	reason                string
	path                  []string // who spoke, and how it ended
	drawing               string
}

// check compares the log with what everyone meant to say and was sent.
func (o *outcome) check(ctx context.Context, hub *v1.Client) (*checked, error) {
	var log []*v1.Event
	if err := hub.Events(ctx, o.channel, v1.EventQuery{}, func(ev *v1.Event) error { log = append(log, ev); return nil }); err != nil {
		return nil, err
	}
	ch, err := hub.Channel(ctx, o.channel)
	if err != nil {
		return nil, err
	}
	result := &checked{length: len(log), reason: ch.CloseReason}
	wanted := []string{"triage", "database", "triage", "hana", peerName, "triage"}
	var spoke []string
	for i, ev := range log {
		if ev.Sequence != uint64(i+1) {
			result.lost++
		}
		if ev.Type == envelope.TypeText || ev.Type == envelope.TypePacket {
			spoke = append(spoke, ch.Name(ev.Sender))
		}
	}
	result.lost += max(len(wanted)-len(spoke), 0)
	result.doubled += max(len(spoke)-len(wanted), 0)
	if !slices.Equal(spoke, wanted) && result.lost+result.doubled == 0 {
		return nil, fmt.Errorf("the demo failed: they spoke as %v, not %v", spoke, wanted)
	}
	result.lost += o.untold(log)
	path, g, err := pathOf(ch, log)
	if err != nil {
		return nil, err
	}
	for _, hop := range path {
		result.path = append(result.path, ch.Name(hop.From))
	}
	result.path = append(result.path, result.reason)
	result.drawing = graph.Mermaid(g, graph.Drawing{Names: ch.Names, Creator: ch.Creator, Path: path})
	return result, nil
}

// untold counts deliveries that somebody should have got and did not.
func (o *outcome) untold(log []*v1.Event) (n int) {
	o.cast.mu.Lock()
	defer o.cast.mu.Unlock()
	for name, heard := range o.cast.heard {
		id := o.cast.id(name)
		last := lastTurn(log)
		for _, ev := range log[:last] {
			turn := ev.Type == envelope.TypeText || ev.Type == envelope.TypePacket
			// A supervisor's text that made a participant expected is read
			// from the log.
			if !turn || ev.Sender == id || ev.Sender == o.cast.id("hana") {
				continue
			}
			if !slices.Contains(heard, ev.ID) {
				n++
			}
		}
	}
	return n
}

// lastTurn returns the position of the last turn, with which the channel closes.
func lastTurn(log []*v1.Event) int {
	for i := len(log) - 1; i >= 0; i-- {
		if log[i].Type == envelope.TypePacket {
			return i
		}
	}
	return 0
}

// pathOf finds the turns that were taken through the channel's graph.
func pathOf(ch *v1.Channel, log []*v1.Event) ([]graph.Hop, *graph.Graph, error) {
	var knobs struct {
		Graph       json.RawMessage `json:"graph"`
		Supervisors []string        `json:"supervisors"`
	}
	if err := json.Unmarshal(ch.Knobs, &knobs); err != nil {
		return nil, nil, err
	}
	g, err := graph.Load(knobs.Graph)
	if err != nil {
		return nil, nil, err
	}
	var order []string
	for _, p := range ch.Participants {
		order = append(order, p.Agent)
	}
	facts := g.Start(order, ch.Creator, graph.Vars{})
	var path []graph.Hop
	for _, ev := range log {
		e := &envelope.Envelope{ID: ev.ID, Sender: ev.Sender, Type: ev.Type, Data: ev.Data}
		if slices.Contains(knobs.Supervisors, ev.Sender) && !facts.MaySpeak(ev.Sender) {
			continue // a supervisor's text is not a turn
		}
		next, route := g.Advance(facts, e)
		if next.Turns > facts.Turns {
			path = append(path, graph.Hop{
				Turn: next.Turns, From: ev.Sender, To: next.Expected, Closed: next.Closing, By: route.By, Rule: route.Rule,
			})
		}
		facts = next
	}
	return path, g, nil
}
