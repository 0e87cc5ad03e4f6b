package main

import (
	"context"
	"encoding/json"
	"time"

	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/hub"
	"github.com/parley-hub/parley/identity"
	"github.com/parley-hub/parley/request"
	"github.com/parley-hub/parley/task"
)

// story seeds an incident that agents hand to each other and a person decides about.
func (s *seeder) story(ctx context.Context) (any, error) {
	ids, err := s.agents(ctx, "triage", "database", "network")
	if err != nil {
		return nil, err
	}
	hana, err := s.agent(ctx, "hana", identity.Human)
	if err != nil {
		return nil, err
	}
	triage, database, network := ids[0], ids[1], ids[2]
	to := func(id string) any {
		return map[string]any{"name": "agent", "args": map[string]any{"agent_id": id}}
	}
	area := func(value, id string) any {
		return map[string]any{"when": map[string]any{"name": "context_equals", "args": map[string]any{"key": "area", "value": value}}, "then": to(id)}
	}
	graph := map[string]any{"initial_speaker": triage, "transitions": []any{
		map[string]any{"when": map[string]any{"name": "from_speaker", "args": map[string]any{"agent_id": hana}}, "then": map[string]any{"name": "terminate", "args": map[string]any{"reason": "resolved"}}},
		area("database", database), area("network", network), area("people", hana),
	}, "default_target": to(triage)}
	knobs, err := json.Marshal(map[string]any{
		"graph": graph, "expectations": []any{map[string]any{"name": "turn_within", "params": map[string]any{"seconds": 900}, "on_violation": "audit"}},
	})
	if err != nil {
		return nil, err
	}
	id, err := s.open(ctx, "Checkout is slow", "workflow", knobs, triage, database, network, hana)
	if err != nil {
		return nil, err
	}
	type said struct {
		by, body, area string
	}
	for _, t := range []said{
		{triage, "Checkout is slow since 14:02. p99 of `POST /orders` went from **180 ms to 4.1 s**; nothing was deployed. Database first.", "database"},
		{database, "Not us: locks and replication lag are normal.\n\n- slowest query 12 ms\n- connections wait for their TCP handshake\n\nThat is packet loss on the way to the replica.", "network"},
		{network, "Found it: one of two links of rack 7 drops **3 %** of its packets. I can drain the link; it halves the rack's bandwidth.", "people"},
	} {
		data, err := json.Marshal(map[string]any{
			"routing": map[string]any{"kind": "text"}, "body": t.body, "context_updates": map[string]any{"set": map[string]any{"area": t.area}},
		})
		if err != nil {
			return nil, err
		}
		if _, err := s.hub.Post(ctx, &envelope.Envelope{Channel: id, Sender: t.by, Type: envelope.TypePacket, Data: data}, nil); err != nil {
			return nil, err
		}
	}
	asked, err := s.hub.Ask(ctx, hub.Asking{Request: request.Request{
		Kind: "approval", Channel: id, AskedBy: network, For: hana, Title: "Drain link 2 of rack 7?", DueAt: time.Now().Add(15 * time.Minute), IfNobodyAnswers: "deny",
		Action:  &request.Action{Name: "drain_link", Arguments: []byte(`{"link":2,"rack":7}`)},
		Choices: []request.Choice{{ID: "approve", Label: "Approve", Consequence: "The link is drained; rack 7 has half its bandwidth."}, {ID: "deny", Label: "Deny"}},
	}}, nil)
	if err != nil {
		return nil, err
	}
	talk, err := s.open(ctx, "Release 7", "discussion", nil, triage, database)
	if err != nil {
		return nil, err
	}
	if _, err := s.hub.Post(ctx, &envelope.Envelope{Channel: talk, Sender: triage, Type: envelope.TypeText, Data: []byte(`{"text":"Release 7 waits for the incident."}`)}, nil); err != nil {
		return nil, err
	}
	look := task.Task{ID: "look-at-link-2", Owner: network, Channel: id, State: task.Running, Spec: task.Spec{Title: "Look at link 2"}}
	return map[string]any{"channel_id": id, "request_id": asked.ID, "talk_id": talk, "task_id": look.ID}, s.hub.ObserveTask(ctx, look, nil, hub.MirrorOff)
}
