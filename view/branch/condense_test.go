package branch_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/parley-hub/parley/view/branch"
)

// anyEvent returns an event about one of a few messages and calls.
func anyEvent(t *rapid.T, seq int) branch.Event {
	id := rapid.SampledFrom([]string{"a", "b", "c", ""}).Draw(t, "id")
	kind := rapid.SampledFrom([]string{
		branch.TextDelta, branch.TextDelta, branch.TextDelta, branch.ReasoningDelta, branch.ReasoningDelta,
		branch.MessageTurnStarted, branch.MessageTurnFinished, branch.BranchRunStarted, branch.BranchRunCompleted, branch.MessageStarted, branch.MessageCompleted,
		branch.TextMessageStart, branch.TextMessageEnd, branch.ContentAdded, branch.ToolCallStart, branch.ToolCallArgs, branch.ToolCallEnd, branch.ToolCallResult,
		branch.BranchMetadataUpdated, branch.BranchMiddlewareStateCommitted, branch.BranchHistoryCompacted,
	}).Draw(t, "type")
	var data string
	switch kind {
	case branch.TextDelta, branch.ReasoningDelta:
		data = fmt.Sprintf(`{"messageId":%q,"text":"%d\u00e9 "}`, id, seq)
		switch rapid.IntRange(0, 9).Draw(t, "odd") {
		case 0:
			data = fmt.Sprintf(`{"messageId":%q,"text":"%d","protectedData":"p"}`, id, seq)
		case 1:
			data = `{"messageId":7}`
		}
	case branch.MessageTurnStarted, branch.MessageTurnFinished:
		data = fmt.Sprintf(`{"messageTurnId":"t%d"}`, seq)
	case branch.MessageStarted, branch.TextMessageStart:
		data = fmt.Sprintf(`{"messageId":%q,"role":%q}`, id, rapid.SampledFrom([]string{"user", "assistant"}).Draw(t, "role"))
	case branch.ContentAdded:
		data = fmt.Sprintf(`{"messageId":%q,"content":{"$type":"uri","uri":"u%d","mediaType":"a/b"}}`, id, seq)
	case branch.ToolCallStart:
		data = fmt.Sprintf(`{"callId":"k","name":"f","messageId":%q}`, id)
	case branch.ToolCallArgs:
		data = fmt.Sprintf(`{"callId":"k","argsJson":"{\"n\":%d}"}`, seq)
	case branch.ToolCallEnd:
		data = `{"callId":"k"}`
	case branch.ToolCallResult:
		data = fmt.Sprintf(`{"callId":"k","result":{"text":"r%d"}}`, seq)
	case branch.BranchMetadataUpdated:
		data = fmt.Sprintf(`{"name":"n%d"}`, seq)
	case branch.BranchMiddlewareStateCommitted:
		data = fmt.Sprintf(`{"state":{"k":"%d"}}`, seq)
	case branch.BranchHistoryCompacted:
		data = fmt.Sprintf(`{"compactionId":"c%d","durableCompactedMessageIds":[%q],"replacementMessages":[{"role":"assistant","contents":[{"$type":"text","text":"s"}]}],"compactedAt":"2026-01-01T00:00:00Z"}`, seq, id)
	default:
		data = fmt.Sprintf(`{"messageId":%q}`, id)
	}
	flow := rapid.SampledFrom([]string{"", "", "f1", "f2"}).Draw(t, "flow")
	return branch.Event{Type: kind, Seq: uint64(seq), Time: time.Unix(int64(seq), 0).UTC(), Flow: flow, Data: []byte(data)}
}

// A condensed log has the messages of the log, wherever it is cut.
func TestCondensedIsEquivalent(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var whole, short branch.History
		var c branch.Condenser
		n := rapid.IntRange(1, 60).Draw(t, "events")
		next := uint64(1)
		take := func(last int) {
			part, err := c.Take()
			if err != nil {
				t.Fatal(err)
			}
			if part.From != next || part.To != uint64(last) {
				t.Fatalf("a part from %d to %d, want from %d to %d", part.From, part.To, next, last)
			}
			next = part.To + 1
			part.Apply(&short)
		}
		for seq := 1; seq <= n; seq++ {
			e := anyEvent(t, seq)
			whole.Apply(e)
			c.Add(e)
			if seq == n || rapid.IntRange(0, 9).Draw(t, "cut") == 0 {
				take(seq)
			}
		}
		opts := cmp.Options{cmpopts.IgnoreUnexported(branch.Content{}), cmpopts.EquateEmpty()}
		if diff := cmp.Diff(whole.Messages(), short.Messages(), opts); diff != "" {
			t.Fatalf("messages (-log +condensed):\n%s", diff)
		}
		for i, m := range whole.Messages() { // a fork writes them again
			want, err := branch.Expand(&m)
			got, failed := branch.Expand(&short.Messages()[i])
			if diff := cmp.Diff(want, got); diff != "" || err != nil || failed != nil {
				t.Fatalf("as events (-log +condensed): %v, %v\n%s", err, failed, diff)
			}
		}
		if diff := cmp.Diff([]any{whole.Fields, whole.State, whole.Compacted}, []any{short.Fields, short.State, short.Compacted}); diff != "" {
			t.Fatalf("the rest (-log +condensed):\n%s", diff)
		}
	})
}

// Its size is that of the messages.
func TestCondensedIsShort(t *testing.T) {
	t.Parallel()
	var c branch.Condenser
	for seq := range 10_000 {
		c.Add(branch.Event{Type: branch.TextDelta, Seq: uint64(seq + 1), Data: fmt.Appendf(nil, `{"messageId":"m%d","text":"x"}`, seq%2)})
	}
	part, err := c.Take()
	if err != nil || len(part.Events) != 2 || len(part.Events[0].Data) > 6000 {
		t.Errorf("%d events of %d bytes, %v", len(part.Events), len(part.Events[0].Data), err)
	}
}
