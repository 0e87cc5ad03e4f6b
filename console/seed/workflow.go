package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/parley-hub/parley/adapter/workflow"
	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/envelope"
)

// speakers of a random workflow.
var speakers = []string{"ada", "bob", "cleo", "dan"}

// fold is the state of a workflow after an event, with names.
type fold struct {
	Sequence uint64            `json:"sequence"`
	State    string            `json:"state"`
	Next     string            `json:"next"` // empty: nobody
	Context  map[string]string `json:"context"`
	Turns    int               `json:"turns"`
}

type workflowTold struct {
	ChannelID string          `json:"channel_id"`
	Length    uint64          `json:"length"`
	Graph     json.RawMessage `json:"graph"`  // for parley graph simulate
	Script    json.RawMessage `json:"script"` // the same
	Turns     []uint64        `json:"turns"`  // their sequences
	Folds     []fold          `json:"folds"`
}

// rule returns a random rule with names in place of ids.
func (s *seeder) rule() map[string]any {
	from := map[string]any{"name": "from_speaker", "args": map[string]any{"agent_id": s.speaker()}}
	equals := map[string]any{"name": "context_equals", "args": map[string]any{"key": s.variable(), "value": s.random.IntN(3)}}
	when := []any{from, equals}[s.random.IntN(2)]
	return map[string]any{
		"when": when, "then": map[string]any{"name": "agent", "args": map[string]any{"agent_id": s.speaker()}}, "priority": s.random.IntN(3),
	}
}

func (s *seeder) speaker() string  { return speakers[s.random.IntN(len(speakers))] }
func (s *seeder) variable() string { return []string{"area", "load", "tries"}[s.random.IntN(3)] }

// workflow plays random turns through a random graph and folds what they make.
func (s *seeder) workflow(ctx context.Context) (any, error) {
	ids, err := s.agents(ctx, speakers...)
	if err != nil {
		return nil, err
	}
	rules := []any{}
	for range 6 {
		rules = append(rules, s.rule())
	}
	named := map[string]any{
		"initial_speaker": speakers[0], "transitions": rules, "default_target": map[string]any{"name": "round_robin", "args": map[string]any{}},
	}
	byID := renamed(named, ids).(map[string]any)
	knobs, err := json.Marshal(map[string]any{"graph": byID, "expectations": nothingDue})
	if err != nil {
		return nil, err
	}
	id, err := s.open(ctx, "Random", "workflow", knobs, ids...)
	if err != nil {
		return nil, err
	}
	told := workflowTold{ChannelID: id}
	var lines []any
	for n := range s.count {
		b, err := s.hub.Brief(ctx, id)
		if err != nil {
			return nil, err
		}
		packet, line := s.turn(n)
		if _, err := s.hub.Post(ctx, &envelope.Envelope{Channel: id, Sender: b.Turn.Agent, Type: envelope.TypePacket, Data: packet}, nil); err != nil {
			return nil, err
		}
		lines = append(lines, line)
	}
	if told.Graph, err = json.Marshal(named); err != nil {
		return nil, err
	}
	if told.Script, err = json.Marshal(map[string]any{"participants": speakers, "creator": speakers[0], "turns": lines}); err != nil {
		return nil, err
	}
	return told, s.folds(ctx, &told, ids)
}

// turn returns what is said, as a packet and as a line of a script.
func (s *seeder) turn(n int) (packet []byte, line map[string]any) {
	line = map[string]any{"body": fmt.Sprint("turn ", n)}
	updates := "{}"
	if s.random.IntN(2) == 0 {
		key, value := s.variable(), s.random.IntN(3)
		line["set"] = map[string]any{key: value}
		updates = fmt.Sprintf(`{"set":{%q:%d}}`, key, value)
	}
	return fmt.Appendf(nil, `{"routing":{"kind":"text"},"body":"turn %d","context_updates":%s}`, n, updates), line
}

// renamed replaces names by ids.
func renamed(value any, ids []string) any {
	switch v := value.(type) {
	case string:
		if at := slices.Index(speakers, v); at >= 0 {
			return ids[at]
		}
	case map[string]any:
		out := maps.Clone(v)
		for key := range out {
			if key != "name" {
				out[key] = renamed(out[key], ids)
			}
		}
		return out
	case []any:
		out := slices.Clone(v)
		for i := range out {
			out[i] = renamed(out[i], ids)
		}
		return out
	}
	return value
}

// folds folds the log from its beginning, and keeps random moments of it.
func (s *seeder) folds(ctx context.Context, told *workflowTold, ids []string) error {
	m, err := s.hub.Channel(ctx, told.ChannelID)
	if err != nil {
		return err
	}
	a, err := s.hub.Adapter(ctx, m.ID)
	if err != nil {
		return err
	}
	state, err := a.Initial(m)
	if err != nil {
		return err
	}
	head, err := s.hub.Position(ctx, m.ID)
	if err != nil {
		return err
	}
	told.Length = head.Seq
	wanted := map[uint64]bool{}
	for len(wanted) < min(s.samples, int(head.Seq)+1) {
		wanted[s.random.Uint64N(head.Seq+1)] = true
	}
	life, turns := channel.Pending, 0
	note := func(sequence uint64) {
		if !wanted[sequence] {
			return
		}
		f := fold{Sequence: sequence, State: life.String(), Context: map[string]string{}, Turns: turns}
		if turn, ok := a.Expected(m, state); ok {
			f.Next = speakers[slices.Index(ids, turn.Agent)]
		}
		if w, ok := state.(*workflow.State); ok {
			for key, value := range w.Facts.Vars.All() {
				f.Context[key] = value
			}
		}
		told.Folds = append(told.Folds, f)
	}
	note(0)
	for e, err := range s.hub.Log(ctx, m.ID, 1, head.Seq) {
		if err != nil {
			return err
		}
		state = a.Fold(state, e)
		switch e.Type {
		case envelope.TypeOpened:
			life = channel.Active
		case envelope.TypePacket:
			turns++
			told.Turns = append(told.Turns, e.Seq)
		}
		note(e.Seq)
	}
	return nil
}

// graph seeds a workflow of many agents, each of whom hands over to the next.
// Only the first two take part: an invitation of everybody would be too large.
func (s *seeder) graph(ctx context.Context) (any, error) {
	var ids []string
	rules := []any{}
	for n := range s.count {
		made, err := s.agents(ctx, fmt.Sprint("agent-", n))
		if err != nil {
			return nil, err
		}
		ids = append(ids, made...)
	}
	to := func(id string) map[string]any {
		return map[string]any{"name": "agent", "args": map[string]any{"agent_id": id}}
	}
	for n, id := range ids {
		rules = append(rules, map[string]any{"when": map[string]any{"name": "from_speaker", "args": map[string]any{"agent_id": id}}, "then": to(ids[(n+1)%len(ids)])})
	}
	knobs, err := json.Marshal(map[string]any{"graph": map[string]any{"initial_speaker": ids[0], "transitions": rules}, "expectations": nothingDue})
	if err != nil {
		return nil, err
	}
	id, err := s.open(ctx, "Wide", "workflow", knobs, ids[:2]...)
	return map[string]any{"channel_id": id}, err
}
