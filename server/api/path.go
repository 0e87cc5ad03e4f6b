package api

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-hub/parley/adapter/workflow"
	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/graph"
)

// stepBody is one turn, with the transition that decided who was next, and why.
type stepBody struct {
	Sequence   uint64        `json:"sequence"`
	Envelope   string        `json:"envelope_id"`
	CreatedAt  time.Time     `json:"created_at"`
	Turn       int           `json:"turn"`
	Speaker    string        `json:"speaker_id"`
	By         graph.By      `json:"by"`
	Rule       *int          `json:"rule"`
	Tool       string        `json:"tool"`
	Decision   decisionBody  `json:"decision"`
	Because    *explained    `json:"because"`
	PassedOver []passedBody  `json:"passed_over"`
	Changed    []changedBody `json:"changed"`
}

type decisionBody struct {
	Speaker *string `json:"speaker_id"`
	End     bool    `json:"end"`
	Reason  *string `json:"reason"`
}

type passedBody struct {
	Rule    int       `json:"rule"`
	Because explained `json:"because"`
}

type changedBody struct {
	Key    string         `json:"key"`
	Before jsontext.Value `json:"before"`
	After  jsontext.Value `json:"after"`
}

// explained is a condition with the writers of the variables that it read.
type explained struct {
	Name  string      `json:"name"`
	Says  string      `json:"says"`
	Holds bool        `json:"holds"`
	Read  []readBody  `json:"read"`
	Of    []explained `json:"of"`
}

type readBody struct {
	What     string         `json:"what"`
	Value    jsontext.Value `json:"value"`
	Sequence uint64         `json:"sequence"`
	Envelope string         `json:"envelope_id"`
	Sender   string         `json:"sender_id"`
}

type pathPage struct {
	Steps []stepBody `json:"steps"`
	Next  string     `json:"next"` // the sequence to continue after; empty at the end
	Prev  string     `json:"prev"` // the sequence to go back from; empty at the beginning
}

var errNoGraph = fault.New(fault.NotFound, "this channel has no graph; channels of type %s have one", workflow.Type)

// channelPath shows one step for each turn after or before a sequence.
func (a *API) channelPath(c *call) error {
	m, head, _, err := a.asked(c)
	if err != nil {
		return err
	}
	if m.Manifest.Type != workflow.Type {
		return errNoGraph
	}
	limit, err := c.limit(a.cfg.Limits)
	if err != nil {
		return err
	}
	after, err := c.sequence("after", 0)
	if err != nil {
		return err
	}
	before, err := c.sequence("before", 0)
	if err != nil {
		return err
	}
	page := pathPage{Steps: []stepBody{}}
	if before > 0 {
		page.Steps, err = a.stepsBefore(c.Context(), m, min(before, head.Seq+1), limit.entries)
	} else {
		page.Steps, err = a.steps(c.Context(), m, min(after, head.Seq), head.Seq, limit.entries)
	}
	if err != nil {
		return err
	}
	if n := len(page.Steps); n > 0 {
		if last := page.Steps[n-1].Sequence; n == limit.entries && last < head.Seq || before > 0 {
			page.Next = strconv.FormatUint(last, 10)
		}
		if first := page.Steps[0]; first.Turn > 1 {
			page.Prev = strconv.FormatUint(first.Sequence, 10)
		}
	}
	return c.write(http.StatusOK, page)
}

// sequence reads a parameter that is a sequence of the channel.
func (c *call) sequence(name string, unless uint64) (uint64, error) {
	text := c.URL.Query().Get(name)
	if text == "" {
		return unless, nil
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0, fault.New(fault.Invalid, "%s=%q is not a sequence; it is a number, as events have it in sequence", name, text)
	}
	return n, nil
}

// stepsBefore collects the last steps before a sequence. It folds one stretch between
// two kept states after another, from the end.
func (a *API) stepsBefore(ctx context.Context, m *channel.Metadata, before uint64, most int) ([]stepBody, error) {
	var found []stepBody
	for to := before - 1; to > 0 && len(found) < most; {
		from := (to - 1) / markEvery * markEvery
		part, err := a.steps(ctx, m, from, to, markEvery)
		if err != nil {
			return nil, err
		}
		found = append(part, found...)
		to = from
	}
	return found[max(0, len(found)-most):], nil
}

// steps collects the turns after one sequence up to another.
func (a *API) steps(ctx context.Context, m *channel.Metadata, after, to uint64, most int) ([]stepBody, error) {
	steps := []stepBody{}
	if after >= to {
		return steps, nil
	}
	adapter, err := a.hub.Adapter(ctx, m.ID)
	if err != nil {
		return nil, err
	}
	at, err := a.seek(ctx, m, after)
	if err != nil {
		return nil, err
	}
	for e, err := range a.hub.Log(ctx, m.ID, after+1, to) {
		if err != nil {
			return nil, err
		}
		next := at.after(adapter, m, e)
		if step, ok := stepOf(at, next, e); ok {
			if steps = append(steps, step); len(steps) >= most {
				break
			}
		}
		at = next
	}
	return steps, nil
}

// stepOf returns the step of an envelope, if the envelope was a turn.
func stepOf(at, next moment, e *envelope.Envelope) (stepBody, bool) {
	before, ok := at.state.(*workflow.State)
	after, folded := next.state.(*workflow.State)
	if !ok || !folded || after.Facts.Turns == before.Facts.Turns {
		return stepBody{}, false
	}
	why := before.Graph.Explain(before.Facts, e)
	step := stepBody{
		Sequence: e.Seq, Envelope: e.ID, CreatedAt: e.CreatedAt, Turn: after.Facts.Turns, Speaker: e.Sender, By: why.By,
		Decision:   decisionBody{Speaker: optional(why.Decision.Speaker), End: why.Decision.End, Reason: optional(why.Decision.Reason)},
		PassedOver: []passedBody{}, Changed: changes(before.Facts.Vars, after.Facts.Vars),
	}
	if reason, closes := after.Graph.Outcome(&after.Facts); closes && !step.Decision.End {
		step.Decision = decisionBody{End: true, Reason: optional(reason)}
	}
	if why.Rule != graph.NoRule {
		step.Rule = &why.Rule
	}
	if e.Type == envelope.TypePacket {
		step.Tool = graph.ReadPacket(e.Data).Tool
	}
	if why.Because != nil {
		because := explainedBy(*why.Because, next.writers)
		step.Because = &because
	}
	for _, p := range why.Passed[:min(len(why.Passed), mostPassed)] {
		step.PassedOver = append(step.PassedOver, passedBody{p.Rule, explainedBy(p.Because, next.writers)})
	}
	return step, true
}

func explainedBy(x graph.Explained, writers map[string]writer) explained {
	out := explained{Name: x.Name, Says: x.Says, Holds: x.Holds, Read: []readBody{}, Of: []explained{}}
	for _, r := range x.Read {
		read := readBody{What: r.What, Value: shortened(r.Value)}
		if w, ok := writers[r.Key]; ok && r.Key != "" {
			read.Sequence, read.Envelope, read.Sender = w.sequence, w.envelope, w.sender
		}
		out.Read = append(out.Read, read)
	}
	for _, nested := range x.Of {
		out.Of = append(out.Of, explainedBy(nested, writers))
	}
	return out
}

// changes lists the variables that a turn wrote.
func changes(before, after graph.Vars) []changedBody {
	list := []changedBody{}
	null := jsontext.Value("null")
	for key, value := range after.All() {
		if old, ok := before.Get(key); !ok {
			list = append(list, changedBody{key, null, shortened(jsontext.Value(value))})
		} else if old != value {
			list = append(list, changedBody{key, shortened(jsontext.Value(old)), shortened(jsontext.Value(value))})
		}
	}
	for key, value := range before.All() {
		if _, ok := after.Get(key); !ok {
			list = append(list, changedBody{key, shortened(jsontext.Value(value)), null})
		}
	}
	slices.SortFunc(list, func(a, b changedBody) int { return strings.Compare(a.Key, b.Key) })
	return list
}

// mostValue is how many bytes of a variable a step shows. A longer one is truncated
// and shown as text.
const mostValue = 4096

func shortened(value jsontext.Value) jsontext.Value {
	if len(value) <= mostValue {
		return value
	}
	data, _ := jsontext.AppendQuote(nil, strings.ToValidUTF8(string(value[:mostValue]), "")+"…")
	return data
}

// mostPassed is how many transitions that did not fire a step shows.
const mostPassed = 100

// mostHops is how many turns a drawn path shows, the newest.
const mostHops = 1000

type graphBody struct {
	Initial  string          `json:"initial"`
	MaxTurns *int            `json:"max_turns"`
	Nodes    []graph.Node    `json:"nodes"`
	Edges    []graph.Edge    `json:"edges"`
	Findings []graph.Finding `json:"findings"`
}

// channelGraph shows the graph with the path that was taken up to a sequence.
func (a *API) channelGraph(c *call) error {
	m, _, at, err := a.asked(c)
	if err != nil {
		return err
	}
	if m.Manifest.Type != workflow.Type {
		return errNoGraph
	}
	was, err := a.seek(c.Context(), m, at)
	if err != nil {
		return err
	}
	state, ok := was.state.(*workflow.State)
	if !ok {
		return errNoGraph
	}
	steps, err := a.stepsBefore(c.Context(), m, at+1, mostHops)
	if err != nil {
		return err
	}
	drawing := graph.Drawing{Names: a.names(map[string]string{}, m), Creator: m.Creator}
	for _, s := range steps {
		hop := graph.Hop{Turn: s.Turn, From: s.Speaker, By: s.By, Rule: graph.NoRule, Tool: s.Tool}
		if s.Rule != nil {
			hop.Rule = *s.Rule
		}
		switch {
		case s.Decision.End:
			hop.Closed = graph.ReasonTerminated
			if s.Decision.Reason != nil {
				hop.Closed = *s.Decision.Reason
			}
		case s.Decision.Speaker != nil:
			hop.To = *s.Decision.Speaker
		}
		drawing.Path = append(drawing.Path, hop)
	}
	layout := graph.LayOut(state.Graph, drawing, was.expected)
	body := graphBody{
		Initial: state.Graph.InitialSpeaker(), Nodes: layout.Nodes, Edges: layout.Edges,
		Findings: orEmpty(graph.Check(state.Graph, m.IDs())),
	}
	if most, capped := state.Graph.MaxTurns(); capped {
		body.MaxTurns = &most
	}
	return c.write(http.StatusOK, body)
}
