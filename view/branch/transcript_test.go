package branch_test

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/parley-hub/parley/conformance/spec"
	"github.com/parley-hub/parley/view/branch"
)

// watch applies events as a live stream shows them: only what is stored has a
// sequence.
func watch(lines ...string) *branch.Transcript {
	t := &branch.Transcript{}
	for _, e := range stream(lines...) {
		t.Apply(e)
	}
	return t
}

func stream(lines ...string) []branch.Event {
	table := branch.NewTable()
	out := events(lines...)
	seq := uint64(0)
	for i := range out {
		if table.Durable(out[i].Type, out[i].Data, true) {
			seq++
			out[i].Seq = seq
		} else {
			out[i].Seq, out[i].ID = 0, ""
		}
	}
	return out
}

func items(t *branch.Transcript) []string {
	out := []string{}
	for _, it := range t.Items {
		line := fmt.Sprintf("%s %s %s", it.Kind, it.ID, it.State)
		for _, more := range []string{it.Role, it.Name, it.Args, it.Text} {
			if more != "" {
				line += " " + more
			}
		}
		out = append(out, line)
	}
	return out
}

const (
	run   = `BRANCH_RUN_STARTED {"runtimeRunId":"r1"}`
	turn  = `MESSAGE_TURN_STARTED {"messageTurnId":"t1"}`
	model = `AGENT_TURN_STARTED {"iteration":1}`
	start = `TEXT_MESSAGE_START {"messageId":"m","role":"assistant"}`
	kiwi  = `TEXT_DELTA {"messageId":"m","text":"Kiwi"}`
	end   = `TEXT_MESSAGE_END {"messageId":"m"}`
	think = `REASONING_DELTA {"messageId":"m","text":"hm"}`
	retry = `MODEL_CALL_RETRY {"attempt":1}`
	ended = `BRANCH_RUN_COMPLETED {"runtimeRunId":"r1","cancelled":false}`
)

func TestRendering(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		lines []string
		want  []string
	}{
		"seed-003#110: a start opens a block":         {[]string{start}, []string{"message m running assistant"}},
		"seed-003#110: deltas append":                 {[]string{start, kiwi, `TEXT_DELTA {"messageId":"m","text":"!"}`}, []string{"message m running assistant Kiwi!"}},
		"seed-003#110: an end closes":                 {[]string{start, kiwi, end}, []string{"message m complete assistant Kiwi"}},
		"seed-003#110: a delta of an unknown message": {[]string{kiwi}, []string{"message m running assistant Kiwi"}},
		"seed-003#110: an end of an unknown message":  {[]string{end}, []string{}},
		"seed-003#110: a start opens again":           {[]string{start, kiwi, end, start, kiwi}, []string{"message m running assistant KiwiKiwi"}},
		"seed-003#111 seed-003#34: reasoning is a block of its own": {
			[]string{start, kiwi, `REASONING_MESSAGE_START {"messageId":"m","role":"assistant"}`, think, kiwi, `REASONING_MESSAGE_END {"messageId":"m"}`, end},
			[]string{"message m complete assistant KiwiKiwi", "reasoning m complete assistant hm"},
		},
		"seed-003#112: a tool's way":                    {[]string{`TOOL_CALL_START {"callId":"c","name":"f","messageId":"m"}`, `TOOL_CALL_ARGS {"callId":"c","argsJson":"{}"}`}, []string{"tool c running f {}"}},
		"seed-003#112: an end does not complete it":     {[]string{`TOOL_CALL_START {"callId":"c","name":"f"}`, `TOOL_CALL_END {"callId":"c"}`}, []string{"tool c running f"}},
		"seed-003#112: a result does, before the end":   {[]string{`TOOL_CALL_START {"callId":"c","name":"f"}`, `TOOL_CALL_RESULT {"callId":"c","result":{"text":"7"}}`, `TOOL_CALL_END {"callId":"c"}`}, []string{"tool c complete f 7"}},
		"seed-003#112: arguments replace, odd ones too": {[]string{`TOOL_CALL_ARGS {"callId":"c","argsJson":"{}"}`, `TOOL_CALL_ARGS {"callId":"c","argsJson":"{oops"}`}, []string{"tool c running tool {oops"}},
		"seed-003#112: results by text, json, content": {
			[]string{`TOOL_CALL_RESULT {"callId":"a","result":{"text":"","json":{"x":1}}}`, `TOOL_CALL_RESULT {"callId":"b","result":{"content":[1]}}`, `TOOL_CALL_RESULT {"callId":"c","result":{}}`},
			[]string{`tool a complete tool {"x":1}`, "tool b complete tool [1]", "tool c complete tool"},
		},
		"seed-003#113 seed-003#35: tools between pieces of text": {
			[]string{start, kiwi, `TOOL_CALL_START {"callId":"c","name":"f"}`, `TOOL_CALL_START {"callId":"d","name":"g"}`, kiwi, `TOOL_CALL_RESULT {"callId":"d","result":{"text":"D"}}`, `TOOL_CALL_RESULT {"callId":"c","result":{"text":"C"}}`, end},
			[]string{"message m complete assistant KiwiKiwi", "tool c complete f C", "tool d complete g D"},
		},
		"seed-003#118: responses show nothing":                      {[]string{`PERMISSION_RESPONSE {"permissionId":"p","approved":true}`, `CONTINUATION_RESPONSE {"continuationId":"k"}`, `CLARIFICATION_RESPONSE {"requestId":"q","answer":"x"}`, `CLIENT_TOOL_INVOKE_RESPONSE {"requestId":"t","content":[]}`}, []string{}},
		"seed-003#123: a retry voids partial text, same id":         {[]string{run, turn, model, start, kiwi, retry, start, `TEXT_DELTA {"messageId":"m","text":"Plum"}`}, []string{"message m running assistant Plum"}},
		"seed-003#123: a retry voids partial text, no second start": {[]string{turn, start, kiwi, retry, `TEXT_DELTA {"messageId":"m","text":"Plum"}`}, []string{"message m running assistant Plum"}},
		"seed-003#123: a retry voids partial text, another id":      {[]string{turn, start, kiwi, think, retry, `TEXT_DELTA {"messageId":"n","text":"Plum"}`}, []string{"message m stale assistant", "reasoning m stale assistant", "message n running assistant Plum"}},
		"seed-003#123: what the failed call had ended is void too":  {[]string{turn, model, start, kiwi, end, retry}, []string{"message m stale assistant"}},
		"seed-003#123: earlier calls and people's messages stay":    {[]string{`MESSAGE_STARTED {"messageId":"u","role":"user"}`, `TEXT_DELTA {"messageId":"u","text":"hi"}`, `MESSAGE_COMPLETED {"messageId":"u"}`, turn, model, start, kiwi, end, model, retry}, []string{"message u complete user hi", "message m complete assistant Kiwi"}},
		"seed-003#124: a function's retry leaves text alone":        {[]string{turn, start, kiwi, `FUNCTION_RETRY {"functionName":"f","attempt":1}`}, []string{"message m running assistant Kiwi"}},
		"seed-003#125: an error is shown and closes what is open":   {[]string{turn, start, kiwi, `TOOL_CALL_START {"callId":"c","name":"f"}`, `MESSAGE_TURN_ERROR {"message":"model gone"}`}, []string{"message m incomplete assistant Kiwi", "tool c incomplete f", "error  complete model gone"}},
		"seed-003#125: a cancelled run closes as cancelled":         {[]string{run, turn, start, kiwi, `BRANCH_RUN_COMPLETED {"runtimeRunId":"r1","cancelled":true}`}, []string{"message m cancelled assistant Kiwi"}},
		"seed-003#128: compaction is a notice":                      {[]string{start, kiwi, end, `COMPACTION {"status":"Skipped","strategy":"Summarize","reason":"short"}`, `COMPACTION {"status":"Performed"}`}, []string{"message m complete assistant Kiwi", "notice  complete Compaction Skipped (Summarize): short", "notice  complete Compaction Performed"}},
		"seed-003#129: a compacted history is shown so": {
			[]string{
				`TEXT_DELTA {"messageId":"a","text":"1"}`, `REASONING_DELTA {"messageId":"b","text":"?"}`, `TEXT_DELTA {"messageId":"b","text":"2"}`, `TOOL_CALL_START {"callId":"c","name":"f","messageId":"b"}`, `TEXT_DELTA {"messageId":"d","text":"4"}`,
				`BRANCH_HISTORY_COMPACTED {"durableCompactedMessageIds":["b"],"replacementMessages":[{"messageId":"s","role":"system","text":"sum"}]}`,
			},
			[]string{"message a running assistant 1", "message s complete system sum", "message d running assistant 4"},
		},
		"seed-003#2: unknown types change nothing":    {[]string{start, `NOVEL_THING {"messageId":"m","text":"x"}`, `TEXT_DELTA nonsense`, `TEXT_DELTA {}`}, []string{"message m running assistant"}},
		"seed-003#38: events without correlation ids": {[]string{`TEXT_DELTA {"text":"x"}`, `TOOL_CALL_RESULT {}`, `PERMISSION_REQUEST {}`, `MESSAGE_TURN_ERROR {"message":"x"}`, `TOOL_CALL_BACKGROUND_TASK_STARTED {}`, `ASSISTANT_AUDIO_OUTPUT_STARTED {}`, `WORKFLOW_STARTED {}`, `MESSAGE_STARTED {}`, `CONTENT_ADDED {}`}, []string{"error  complete x"}},
	} {
		spec.Check(t, name, func(t *spec.T) { t.Equal(items(watch(test.lines...)), test.want) })
	}
	t.Run("background work and audio", func(t *testing.T) {
		t.Parallel()
		c := &spec.T{T: t}
		got := watch(run, `BACKGROUND_OPERATION_STARTED {"status":"Queued","operationId":"o"}`, `BACKGROUND_OPERATION_STATUS {"status":"InProgress","statusMessage":"shard 3"}`,
			`TOOL_CALL_BACKGROUND_TASK_STARTED {"taskId":"k","name":"n"}`, `TOOL_CALL_BACKGROUND_TASK_STARTED {"taskId":"l","name":"m"}`, `TOOL_CALL_BACKGROUND_TASK_FAULTED {"taskId":"l","errorMessage":"bad"}`,
			`ASSISTANT_AUDIO_OUTPUT_STREAM_STARTED {"outputFlowId":"f","segmentSequence":1}`, `ASSISTANT_AUDIO_OUTPUT_STREAM_STARTED {"outputFlowId":"f","segmentSequence":2,"played":true}`, `ASSISTANT_AUDIO_PLAYBACK_COMPLETED {"outputFlowId":"f","segmentSequence":1,"played":true,"heardByUser":true}`,
			`USER_AUDIO_TRANSCRIPT_DELTA {"messageId":"h","text":"he"}`, `USER_AUDIO_TRANSCRIPT_COMPLETED {"messageId":"h","text":"hello"}`, ended, `TOOL_CALL_BACKGROUND_TASK_COMPLETED {"taskId":"k"}`)
		c.Equal(items(got), []string{"operation o incomplete InProgress shard 3", "task k complete n", "task l failed m bad", "audio f complete", "audio f incomplete", "transcript h complete user hello"})
		c.True(got.Items[3].Heard && got.Items[3].Played, "segment 1 was heard")
		c.False(got.Items[4].Played, "only playback says what was played")
	})
	spec.Check(t, "hpd-events#25 seed-003#41: one stream gives transcript, prompts, workflow and trace", func(t *spec.T) {
		got := watch(run, turn, `WORKFLOW_STARTED {"workflowName":"w","nodeCount":1}`, start, `PERMISSION_REQUEST {"permissionId":"p","functionName":"wipe","callId":"c"}`, `TOOL_CALL_START {"callId":"c","name":"wipe"}`, `TOOL_CALL_START {"callId":"d","name":"wipe"}`)
		t.Equal(items(got), []string{"message m running assistant", "tool c running wipe", "tool d running wipe"})
		t.Equal(len(got.Prompts), 1)
		t.Equal(got.Flows.All()[0].Name, "w")
	})
}

func TestPrompts(t *testing.T) {
	t.Parallel()
	const (
		permission    = `PERMISSION_REQUEST {"permissionId":"p","functionName":"wipe","callId":"c"}`
		continuation  = `CONTINUATION_REQUEST {"continuationId":"k"}`
		clarification = `CLARIFICATION_REQUEST {"requestId":"q","question":"which?","options":["a","b"]}`
		clientTool    = `CLIENT_TOOL_INVOKE_REQUEST {"requestId":"t","toolName":"open","callId":"d"}`
	)
	ids := func(tr *branch.Transcript) string {
		var out []string
		for _, p := range tr.Prompts {
			out = append(out, p.ID)
		}
		return strings.Join(out, " ")
	}
	spec.Check(t, "seed-003#114 seed-003#36: requests are prompts, not output", func(t *spec.T) {
		got := watch(permission, clarification, permission)
		t.Equal(items(got), []string{})
		t.Equal(got.Prompts, []branch.Prompt{{ID: "p", Type: branch.PermissionRequest, Call: "c", Text: "wipe"}, {ID: "q", Type: branch.ClarificationRequest, Text: "which?", Options: []string{"a", "b"}}})
	})
	for line, want := range map[string]string{
		`PERMISSION_APPROVED {"permissionId":"p"}`:            "k q t",
		`PERMISSION_DENIED {"permissionId":"p","callId":"c"}`: "k q t",
		`AGENT_REQUEST_RESOLVED {"requestId":"k"}`:            "p q t",
		`AGENT_REQUEST_EXPIRED {"requestId":"q"}`:             "p k t",
		`AGENT_REQUEST_CANCELLED {"requestId":"p"}`:           "k q t",
		`TOOL_CALL_RESULT {"callId":"d","result":{}}`:         "p k q",
		`BRANCH_RUN_COMPLETED {"runtimeRunId":"r1"}`:          "",
		`AGENT_REQUEST_STARTED {"requestId":"p"}`:             "p k q t",
		`PERMISSION_RESPONSE {"permissionId":"p"}`:            "p k q t",
	} {
		spec.Check(t, "seed-003#37: pending requests after "+line, func(t *spec.T) {
			t.Equal(ids(watch(run, permission, continuation, clarification, clientTool, line)), want)
		})
	}
	spec.Check(t, "seed-003#126: run events say whether work is active", func(t *spec.T) {
		t.Equal(watch(run, turn, start).Run, "r1")
		t.Equal(watch(run, turn, start, ended).Run, "")
	})
}

func TestWorkflowAndTrees(t *testing.T) {
	t.Parallel()
	spec.Check(t, "seed-003#130: workflow events build a graph", func(t *spec.T) {
		got := watch(`WORKFLOW_STARTED {"workflowName":"w","nodeCount":3}`, `WORKFLOW_LAYER_STARTED {"workflowName":"w","layerIndex":0}`, `WORKFLOW_AGENT_STARTED {"workflowName":"w","agentId":"a","agentName":"A","layerIndex":0}`,
			`WORKFLOW_AGENT_COMPLETED {"workflowName":"w","agentId":"a","success":true,"progress":0.5}`, `WORKFLOW_AGENT_COMPLETED {"workflowName":"w","agentId":"a","success":true,"progress":0.25}`, `WORKFLOW_LAYER_COMPLETED {"workflowName":"w","layerIndex":0}`,
			`WORKFLOW_EDGE_TRAVERSED {"workflowName":"w","fromNodeId":"a","toNodeId":"b"}`, `WORKFLOW_EDGE_TRAVERSED {"workflowName":"w","fromNodeId":"a","toNodeId":"b"}`, `WORKFLOW_AGENT_COMPLETED {"workflowName":"w","agentId":"b","success":false,"errorMessage":"bad"}`,
			`WORKFLOW_AGENT_SKIPPED {"workflowName":"w","agentId":"c","reason":"no"}`, `WORKFLOW_DIAGNOSTIC {"workflowName":"w","level":"Warning","source":"s","message":"slow"}`, `WORKFLOW_COMPLETED {"workflowName":"w","success":false,"duration":"00:00:01"}`)
		t.Equal(got.Flows.Named("w"), &branch.Workflow{
			Name: "w", State: branch.Faulted, Elapsed: "00:00:01", Log: []string{"slow"}, Layers: map[int64]branch.ItemState{0: branch.Complete},
			Edges: []branch.WorkflowEdge{{From: "a", To: "b"}},
			Nodes: map[string]*branch.WorkflowNode{"a": {ID: "a", Name: "A", State: branch.Complete, Progress: 0.5}, "b": {ID: "b", State: branch.Faulted, Text: "bad"}, "c": {ID: "c", State: branch.Complete, Skipped: true, Text: "no"}},
		})
		t.Equal(items(got), []string{})
	})
	spec.Check(t, "seed-003#130: agents form a tree", func(t *spec.T) {
		tr := &branch.Transcript{}
		root := branch.RootAgent("root", "Root")
		byChain := &branch.Agent{AgentID: "chained", AgentName: "Chained", AgentChain: []string{"Root", "Chained"}}
		for _, agent := range []*branch.Agent{nil, root, root.Child("kid", "Kid"), root.Child("kid", "Kid").Child("grandkid", "Grandkid"), byChain, root.Child("kid", "Kid")} {
			tr.Apply(branch.Event{Type: branch.AgentTurnStarted, Data: []byte(`{}`), Agent: agent})
		}
		t.Equal(tr.Agents.Roots(), []string{"root"})
		t.Equal(tr.Agents.Node("root").Children, []string{"kid", "chained"})
		t.Equal(tr.Agents.Node("grandkid").Parent, "kid")
	})
	spans := func(all ...branch.Event) map[string]string {
		tr := &branch.Transcript{}
		for _, e := range all {
			if e.Data == nil {
				e.Data = []byte(`{}`)
			}
			tr.Apply(e)
		}
		out := map[string]string{}
		for _, n := range tr.Spans.Nodes() {
			parent := ""
			if n.Parent != nil {
				parent = n.Parent.Kind + ":" + n.Parent.ID
			}
			out[n.Key.Kind+":"+n.Key.ID] = fmt.Sprintf("%s %d", parent, n.Events)
		}
		return out
	}
	spec.Check(t, "seed-003#32: spans form a hierarchy, a turn's start has no parent", func(t *spec.T) {
		t.Equal(spans(branch.Event{Type: branch.MessageTurnStarted, Trace: "T", Span: "1"}, branch.Event{Type: branch.AgentTurnStarted, Trace: "T", Span: "2", ParentSpan: "1"}, branch.Event{Type: branch.AgentTurnFinished, Trace: "T", Span: "3", ParentSpan: "late"}, branch.Event{Type: branch.AgentTurnFinished, Trace: "T", Span: "late", ParentSpan: "1"}),
			map[string]string{"trace:T": " 0", "span:1": "trace:T 1", "span:2": "span:1 1", "span:3": "span:late 1", "span:late": "span:1 1"})
	})
	spec.Check(t, "seed-003#39 seed-003#40: the most specific id decides", func(t *spec.T) {
		call := []byte(`{"callId":"c","messageId":"m","name":"f"}`)
		t.Equal(spans(branch.Event{Type: branch.ToolCallStart, Trace: "T", Span: "1", Data: call}, branch.Event{Type: branch.ToolCallEnd, Trace: "T", Data: call}, branch.Event{Type: branch.TextDelta, Trace: "T", Data: []byte(`{"messageId":"m","text":""}`)}),
			map[string]string{"trace:T": " 0", "span:1": "trace:T 3"})
		t.Equal(spans(branch.Event{Type: branch.ToolCallEnd, Trace: "T", Data: call}, branch.Event{Type: branch.TextDelta, Trace: "T", Data: []byte(`{"messageId":"m","text":""}`)}, branch.Event{Type: branch.AgentTurnStarted, Trace: "T"}, branch.Event{Type: branch.AgentTurnStarted}),
			map[string]string{"trace:T": " 1", "call:c": "trace:T 1", "message:m": "trace:T 1"})
	})
}

// Readers of the history and live readers see the same, except for live-only
// events; reading history first and then the stream processes an event once.
func TestLawReplayIsWhatWasWatched(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		lines := []string{run, turn}
		for range rapid.IntRange(0, 20).Draw(t, "events") {
			id := rapid.SampledFrom([]string{"a", "b"}).Draw(t, "id")
			lines = append(lines, rapid.SampledFrom([]string{
				`TEXT_MESSAGE_START {"messageId":"` + id + `","role":"assistant"}`, `TEXT_DELTA {"messageId":"` + id + `","text":"x"}`, `TEXT_MESSAGE_END {"messageId":"` + id + `"}`,
				`REASONING_DELTA {"messageId":"` + id + `","text":"y"}`, `TOOL_CALL_START {"callId":"` + id + `","name":"f","messageId":"m"}`, `TOOL_CALL_ARGS {"callId":"` + id + `","argsJson":"{}"}`,
				`TOOL_CALL_END {"callId":"` + id + `"}`, `TOOL_CALL_RESULT {"callId":"` + id + `","result":{"text":"z"}}`, `AGENT_TURN_STARTED {"iteration":1}`, `FUNCTION_RETRY {"functionName":"f"}`,
				`MESSAGE_STARTED {"messageId":"u` + id + `","role":"user"}`, `CONTENT_ADDED {"messageId":"` + id + `","content":{"$type":"uri","uri":"u"}}`, `ITERATION_START {"iteration":1}`,
				`BRANCH_HISTORY_COMPACTED {"durableCompactedMessageIds":["` + id + `"],"replacementMessages":[{"messageId":"s","text":"sum"}]}`,
			}).Draw(t, "line"))
		}
		lines = append(lines, ended)
		all := stream(lines...)
		watched, replayed, merged := &branch.Transcript{}, &branch.Transcript{}, &branch.Transcript{}
		for _, e := range all {
			watched.Apply(e)
		}
		for _, e := range all {
			if e.Seq > 0 {
				replayed.Apply(e)
				merged.Apply(e)
			}
		}
		for _, e := range all {
			merged.Apply(e)
		}
		for name, other := range map[string]*branch.Transcript{"replayed": replayed, "merged": merged} {
			if got, want := strings.Join(items(other), "\n"), strings.Join(items(watched), "\n"); got != want {
				t.Fatalf("%s:\n%s\nwatched:\n%s", name, got, want)
			}
		}
	})
}
