package hpd_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/parley-hub/parley/conformance/spec"
	"github.com/parley-hub/parley/dialect/hpd"
	"github.com/parley-hub/parley/dialect/hpd/wire"
	"github.com/parley-hub/parley/view/branch"
)

func TestPublish(t *testing.T) {
	t.Parallel()
	publish := func(t *spec.T, do func(ctx context.Context, run *hpd.Run) error) (live, stored []object, end object) {
		r := newRig(t, hpd.Config{Producers: map[string]hpd.Producer{"p": hpd.ProducerFunc(
			func(ctx context.Context, run *hpd.Run, _ hpd.Work) error { return do(ctx, run) })}})
		s := r.session()
		w := r.watch("/agents/p/sessions/"+s+"/branches/main/events/live", nil)
		t.Equal(r.input("p", s, "main", "x").status, 202)
		live = w.until("BRANCH_RUN_COMPLETED")
		return live, r.history(s, "main"), live[len(live)-1]
	}
	spec.Check(t, "hpd-events#37: polling is not stored, a meaningful status is, a terminal one is", func(t *spec.T) {
		status := func(s, message string) wire.Payload {
			return wire.BackgroundOperationStatus{Status: wire.OperationStatus(s), StatusMessage: &message}
		}
		live, stored, _ := publish(t, func(ctx context.Context, run *hpd.Run) error {
			return run.Publish(ctx, status("InProgress", "Polling attempt 3"), status("InProgress", "Indexing shard 3"), status("Completed", "Polling attempt 4"))
		})
		t.Equal(len(only(live, "BACKGROUND_OPERATION_STATUS")), 3)
		kept := only(stored, "BACKGROUND_OPERATION_STATUS")
		t.Equal(len(kept), 2)
		t.Equal(kept[0]["statusMessage"], any("Indexing shard 3"))
	})
	spec.Check(t, "hpd-events#44: another scope is refused", func(t *spec.T) {
		_, stored, end := publish(t, func(ctx context.Context, run *hpd.Run) error {
			e := &wire.Event{Payload: wire.TextDelta{MessageID: "m", Text: "x"}}
			e.Scope.Branch = "elsewhere"
			return run.PublishEvents(ctx, e)
		})
		t.Contains(fmt.Sprint(end["errorMessage"]), "another scope")
		t.Equal(len(only(stored, "TEXT_DELTA")), 1) // the user's
	})
	spec.Check(t, "hpd-events#35 hpd-events#36: what is seen live is in the history with the same id and number", func(t *spec.T) {
		live, stored, _ := publish(t, func(ctx context.Context, run *hpd.Run) error {
			return run.Publish(ctx, wire.TextMessageStart{MessageID: "m", Role: "assistant"}, wire.AgentTurnStarted{Iteration: 1}, wire.TextDelta{MessageID: "m", Text: ""}, wire.TextMessageEnd{MessageID: "m"})
		})
		byID := map[any]object{}
		for _, e := range stored {
			byID[e["eventId"]] = e
		}
		durable := 0
		for _, e := range live {
			if e["eventId"] == nil {
				t.Equal(e["type"], any("AGENT_TURN_STARTED"))
				continue
			}
			durable++
			t.Equal(byID[e["eventId"]]["sequenceNumber"], e["sequenceNumber"])
			t.Equal(byID[e["eventId"]]["type"], e["type"])
		}
		t.Equal(durable, 7)
		t.Equal(types(live), []string{
			"BRANCH_RUN_STARTED", "MESSAGE_TURN_STARTED", "TEXT_MESSAGE_START", "AGENT_TURN_STARTED", "TEXT_DELTA", "TEXT_MESSAGE_END", "MESSAGE_TURN_FINISHED", "BRANCH_RUN_COMPLETED",
		})
	})
	spec.Check(t, "hpd-events#32 hpd-events#33: numbers without a gap, every event with an id", func(t *spec.T) {
		_, stored, _ := publish(t, func(ctx context.Context, run *hpd.Run) error { return nil })
		for i, e := range stored {
			t.Equal(e["sequenceNumber"], any(float64(i+1)))
			t.Equal(len(e["eventId"].(string)), 32)
		}
	})
	spec.Check(t, "hpd-events#28: the turn's start has a trace and no parent span", func(t *spec.T) {
		live, _, _ := publish(t, func(ctx context.Context, run *hpd.Run) error { return nil })
		start := only(live, "MESSAGE_TURN_STARTED")[0]
		t.Equal(len(start["traceId"].(string)), 32)
		t.Equal(start["parentSpanId"], nil)
	})
	spec.Check(t, "hpd-events#29: a child's events keep its metadata", func(t *spec.T) {
		live, _, _ := publish(t, func(ctx context.Context, run *hpd.Run) error {
			e := &wire.Event{Payload: wire.TextDelta{MessageID: "m", Text: "x"}}
			e.Metadata = branch.RootAgent("p", "p").Child("p/scout", "scout")
			return run.PublishEvents(ctx, e, &wire.Event{Payload: wire.TextDelta{MessageID: "m", Text: "own"}})
		})
		deltas := only(live, "TEXT_DELTA")
		child := deltas[0]["metadata"].(object)
		t.Equal(child["depth"], any(1.0))
		t.Equal(child["isSubAgent"], any(true))
		t.Equal(child["agentChain"], any([]any{"p", "scout"}))
		t.Equal(deltas[1]["metadata"].(object)["depth"], any(0.0))
	})
	t.Run("a turn of another id is refused, the minted one counts as told", func(t *testing.T) {
		t.Parallel()
		c := &spec.T{T: t}
		var refused, taken error
		_, stored, _ := publish(c, func(ctx context.Context, run *hpd.Run) error {
			refused = run.Publish(ctx, wire.MessageTurnStarted{MessageTurnID: "mine"})
			taken = run.Publish(ctx, wire.MessageTurnStarted{MessageTurnID: run.Turn()})
			return nil
		})
		c.ErrorContains(refused, "turn")
		c.NoError(taken)
		c.Equal(len(only(stored, "MESSAGE_TURN_STARTED")), 1)
	})
	t.Run("a producer tells which of its events an interruption dropped", func(t *testing.T) {
		t.Parallel()
		c := &spec.T{T: t}
		live, stored, _ := publish(c, func(ctx context.Context, run *hpd.Run) error {
			return run.Publish(ctx, wire.EventDropped{DroppedEventFlowID: run.Turn(), DroppedEventType: branch.TextDelta})
		})
		c.Equal(only(live, "EVENT_DROPPED")[0]["droppedEventType"], any("TEXT_DELTA"))
		c.Equal(len(only(stored, "EVENT_DROPPED")), 0)
	})
	t.Run("structural and run events are refused", func(t *testing.T) {
		t.Parallel()
		c := &spec.T{T: t}
		var taken []string
		publish(c, func(ctx context.Context, run *hpd.Run) error {
			for _, p := range []wire.Payload{wire.BranchRunCompleted{RuntimeRunID: run.ID()}, wire.BranchForked{}, wire.MessageStarted{}, wire.PermissionRequest{PermissionID: "p"}, wire.UserTextInput{Text: "x"}} {
				if run.Publish(ctx, p) == nil {
					taken = append(taken, p.EventType())
				}
			}
			return nil
		})
		c.Equal(len(taken), 0)
	})
}
