package hpd_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/parley-hub/parley/conformance/spec"
	"github.com/parley-hub/parley/dialect/hpd"
	"github.com/parley-hub/parley/view/branch"
)

// event returns an event of a type with members.
func event(name string, members ...any) object {
	e := object{"type": name}
	for i := 0; i < len(members); i += 2 {
		e[members[i].(string)] = members[i+1]
	}
	return e
}

func task(name string, members ...any) object {
	e := event("TOOL_CALL_BACKGROUND_TASK_"+name, members...)
	e["name"], e["invocation"] = "index", object{"agentName": "far", "functionCallId": "c1", "functionName": "f"}
	return e
}

const at = "2026-03-09T10:00:00Z"

// stored are events of every family that is stored in the history.
var stored = []object{
	event("REASONING_MESSAGE_START", "messageId", "m1", "role", "assistant"),
	event("REASONING_DELTA", "messageId", "m1", "text", "Hm."),
	event("REASONING_MESSAGE_END", "messageId", "m1"),
	event("TEXT_MESSAGE_START", "messageId", "m1", "role", "assistant"),
	event("TEXT_DELTA", "messageId", "m1", "text", "Ki"),
	event("TOOL_CALL_START", "callId", "c1", "name", "f", "messageId", "m1"),
	event("TOOL_CALL_START", "callId", "c2", "name", "g", "messageId", "m1"),
	event("TOOL_CALL_ARGS", "callId", "c2", "argsJson", `{"a":1}`),
	event("TEXT_DELTA", "messageId", "m1", "text", "wi"),
	event("TOOL_CALL_ARGS", "callId", "c1", "argsJson", ""),
	event("TEXT_MESSAGE_END", "messageId", "m1"),
	event("TOOL_CALL_END", "callId", "c1"),
	event("TOOL_CALL_END", "callId", "c2"),
	event("TOOL_CALL_RESULT", "callId", "c2", "result", object{"text": "two", "json": "two"}),
	event("TOOL_CALL_RESULT", "callId", "c1", "result", object{"text": "one", "json": "one"}),
	task("STARTED", "taskId", "k1", "startedAt", at), task("COMPLETED", "taskId", "k1", "completedAt", at, "durationMilliseconds", 5),
	task("STARTED", "taskId", "k2", "startedAt", at), task("CANCELLED", "taskId", "k2", "cancelledAt", at),
	task("STARTED", "taskId", "k3", "startedAt", at), task("FAULTED", "taskId", "k3", "faultedAt", at, "exceptionType", "E", "errorMessage", "e"),
	event("BACKGROUND_OPERATION_STARTED", "continuationToken", "dG9rZW4=", "status", "Queued", "operationId", "o1"),
	event("BACKGROUND_OPERATION_STATUS", "status", "InProgress", "statusMessage", "Indexing shard 3"),
	event("BACKGROUND_OPERATION_STATUS", "status", "Completed"),
}

// shown are events of every family that is live only.
var shown = []object{
	event("AGENT_TURN_STARTED", "iteration", 1),
	event("BACKGROUND_OPERATION_STATUS", "status", "InProgress", "statusMessage", "Polling attempt 3"),
	event("MODEL_CALL_RETRY", "attempt", 1, "maxRetries", 3, "delay", "00:00:02", "exceptionType", "E", "errorMessage", "e", "isModelNotFound", false, "isRetryable", true),
	event("FUNCTION_RETRY", "functionName", "f", "attempt", 1, "maxRetries", 3, "delay", "00:00:02", "exceptionType", "E", "errorMessage", "e", "isModelNotFound", false, "isRetryable", true),
	event("MIDDLEWARE_ERROR", "sourceName", "s", "errorMessage", "e"),
	event("COMPACTION", "agentName", "far", "iteration", 1, "status", "Skipped", "strategy", "Summarize", "duration", "00:00:00"),
	event("CONTENT_UPLOADED", "contentId", "x", "mediaType", "image/png", "sizeBytes", 5),
	event("USER_AUDIO_TRANSCRIPT_DELTA", "text", "um", "messageId", "u1"),
	event("USER_AUDIO_TRANSCRIPT_COMPLETED", "text", "um yes", "messageId", "u1"),
	event("ASSISTANT_AUDIO_OUTPUT_STARTED", "outputFlowId", "o", "responseId", "r", "providerKey", "k"),
	event("WORKFLOW_STARTED", "workflowName", "w", "nodeCount", 2),
	event("PLAN_MODE_ACTIVATED", "agentName", "far", "timestamp", at),
	event("AGENT_DECISION", "agentName", "far", "decisionType", "call", "iteration", 1, "consecutiveFailures", 0, "completedFunctionsCount", 0),
	event("TOOL_PROGRESS", "callId", "c1", "message", "half", "percentComplete", 50),
	event("AGENT_TURN_FINISHED", "iteration", 1),
}

// played is one run with every family, as each surface shows it.
type played struct {
	frames  []frame
	sse     []object
	ws      []object
	history []object
	rig     *rig
	session string
	turn    string
	work    []object // the frames that the producer got
}

// play runs everything once, with a permission answered by HTTP and a client
// tool answered over the WebSocket.
func play(t *spec.T) *played {
	r := newRig(t, hpd.Config{})
	p := r.producer("far")
	s := r.session()
	out := &played{rig: r, session: s}
	base := "/agents/far/sessions/" + s + "/branches/main"
	k := r.socket(t, base+"/ws")
	k.send(object{"type": "PERMISSION_RESPONSE", "permissionId": "none", "sourceName": "s", "approved": true})
	k.until("AGENT_RESPONSE_REJECTED")
	w := r.watch(base+"/events/live", nil)
	t.Equal(r.do("POST", base+"/inputs", event("USER_TEXT_INPUT", "text", "hi")).status, 202)
	work := p.work.named("input")
	out.turn = work["messageTurnId"].(string)
	t.Equal(p.publish(work, "", shown[0]).status, 202)
	t.Equal(p.publish(work, "", stored...).status, 202)
	t.Equal(p.publish(work, "", shown[1:]...).status, 202)
	id := "?runtimeRunId=" + work["runtimeRunId"].(string)
	t.Equal(p.do("POST", base+"/requests"+id, event("PERMISSION_REQUEST", "permissionId", "p1", "sourceName", "s", "functionName", "f", "callId", "c1")).status, 202)
	t.Equal(r.do("POST", base+"/responses", event("PERMISSION_RESPONSE", "permissionId", "p1", "sourceName", "s", "approved", true)).status, 200)
	out.work = append(out.work, p.work.named("response"))
	t.Equal(p.do("POST", base+"/requests"+id, event("CLIENT_TOOL_INVOKE_REQUEST", "requestId", "t1", "toolName", "Door.open", "callId", "c2")).status, 202)
	k.send(event("CLIENT_TOOL_INVOKE_RESPONSE", "requestId", "t1", "content", []object{{"type": "text", "text": "opened"}}, "success", true))
	out.work = append(out.work, p.work.named("response"))
	t.Equal(p.complete(work, object{"status": "completed"}).status, 200)
	out.frames = w.frames("BRANCH_RUN_COMPLETED")
	for _, f := range out.frames {
		out.sse = append(out.sse, f.event)
	}
	out.ws = k.until("BRANCH_RUN_COMPLETED")
	out.history = r.history(s, "main")
	return out
}

// without drops the base fields that only a live event has.
func without(e object, names ...string) object {
	e = maps.Clone(e)
	for _, name := range names {
		delete(e, name)
	}
	return e
}

func find(list []object, name string) int {
	return slices.IndexFunc(list, func(e object) bool { return e["type"] == name })
}

func TestFamilies(t *testing.T) {
	t.Parallel()
	p := play(&spec.T{T: t})
	live := types(p.sse)
	kept := types(p.history)

	spec.Check(t, "hpd-events#18: a run starts before its turn, live and in the history", func(t *spec.T) {
		for _, list := range [][]object{p.sse, p.ws, p.history} {
			t.True(find(list, "BRANCH_RUN_STARTED") < find(list, "MESSAGE_TURN_STARTED"), "%v", types(list))
		}
		t.Equal(live[0], "BRANCH_RUN_STARTED")
	})
	spec.Check(t, "hpd-events#19 hpd-events#20: a run's end is its last event, and there is one", func(t *spec.T) {
		for _, list := range [][]object{p.sse, p.ws, p.history} {
			t.Equal(list[len(list)-1]["type"], any("BRANCH_RUN_COMPLETED"))
			t.Equal(len(only(list, "BRANCH_RUN_COMPLETED")), 1)
		}
	})
	spec.Check(t, "hpd-events#21: start, deltas, end for each message, live and in the history", func(t *spec.T) {
		for _, list := range [][]object{p.sse, p.ws, p.history} {
			state := map[string]string{}
			for _, e := range list {
				name, _ := e["type"].(string)
				kind, step, found := strings.Cut(strings.Replace(name, "_MESSAGE_", "_", 1), "_")
				if !found || kind != "TEXT" && kind != "REASONING" {
					continue
				}
				key := kind + e["messageId"].(string)
				want := map[string]string{"START": "", "DELTA": "START", "END": "START"}[step]
				t.Equal(state[key], want)
				if step != "DELTA" {
					state[key] = step
				}
			}
			for key, last := range state {
				t.Equal(key+" "+last, key+" END")
			}
			t.True(len(state) >= 2, "text and reasoning")
		}
	})
	spec.Check(t, "hpd-events#22 hpd-events#25: each call has its end and its result, told apart by callId", func(t *spec.T) {
		for _, list := range [][]object{p.sse, p.history} {
			for id, want := range map[string]object{"c1": {"text": "one", "json": "one"}, "c2": {"text": "two", "json": "two"}} {
				of := slices.DeleteFunc(slices.Clone(list), func(e object) bool {
					return e["callId"] != any(id) || !strings.HasPrefix(e["type"].(string), "TOOL_CALL_")
				})
				t.Equal(types(of), []string{"TOOL_CALL_START", "TOOL_CALL_ARGS", "TOOL_CALL_END", "TOOL_CALL_RESULT"})
				t.Equal(of[3]["result"], any(want))
			}
		}
	})
	spec.Check(t, "hpd-events#23: argsJson is a string, {} without arguments", func(t *spec.T) {
		got := map[any]any{}
		for _, e := range only(p.history, "TOOL_CALL_ARGS") {
			got[e["callId"]] = e["argsJson"]
		}
		t.Equal(got, map[any]any{"c1": "{}", "c2": `{"a":1}`})
	})
	spec.Check(t, "hpd-events#24: a client tool's arguments are an object, also where none were given", func(t *spec.T) {
		t.Equal(only(p.sse, "CLIENT_TOOL_INVOKE_REQUEST")[0]["arguments"], any(object{}))
		t.Equal(only(p.ws, "CLIENT_TOOL_INVOKE_REQUEST")[0]["arguments"], any(object{}))
	})
	spec.Check(t, "hpd-events#26: the responses that a producer gets go upstream", func(t *spec.T) {
		for _, e := range p.work {
			t.Equal(e["direction"], any("Upstream"))
		}
		t.Equal(len(p.work), 2)
	})
	spec.Check(t, "hpd-events#27: deltas stream, requests are interactive, run events control", func(t *spec.T) {
		for name, want := range map[string]string{
			"TEXT_DELTA": "Streaming", "REASONING_DELTA": "Streaming", "PERMISSION_REQUEST": "Interactive", "CLIENT_TOOL_INVOKE_REQUEST": "Interactive",
			"BRANCH_RUN_STARTED": "Control", "BRANCH_RUN_COMPLETED": "Control",
		} {
			t.Equal(only(p.sse, name)[0]["channel"], any(want))
		}
		t.Equal(only(p.history, "TEXT_DELTA")[0]["channel"], any("Streaming"))
		t.Equal(only(p.history, "BRANCH_RUN_COMPLETED")[0]["channel"], any("Control"))
	})
	for statement, families := range map[string][]string{
		"hpd-events#30 seed-003#133: branch runs":        {"BRANCH_RUN_STARTED", "BRANCH_RUN_COMPLETED"},
		"hpd-events#30 seed-003#134: message turns":      {"MESSAGE_TURN_STARTED", "MESSAGE_TURN_FINISHED"},
		"hpd-events#30 seed-003#135: text messages":      {"TEXT_MESSAGE_START", "TEXT_DELTA", "TEXT_MESSAGE_END"},
		"hpd-events#30 seed-003#136: reasoning messages": {"REASONING_MESSAGE_START", "REASONING_DELTA", "REASONING_MESSAGE_END"},
		"hpd-events#30 seed-003#137: tool calls":         {"TOOL_CALL_START", "TOOL_CALL_ARGS", "TOOL_CALL_RESULT", "TOOL_CALL_END"},
		"hpd-events#30 seed-003#138: background tasks": {
			"TOOL_CALL_BACKGROUND_TASK_STARTED", "TOOL_CALL_BACKGROUND_TASK_COMPLETED", "TOOL_CALL_BACKGROUND_TASK_CANCELLED", "TOOL_CALL_BACKGROUND_TASK_FAULTED",
		},
		"hpd-events#30: the branch itself": {"BRANCH_CREATED", "BRANCH_METADATA_UPDATED", "BRANCH_TREE_UPDATED", "MESSAGE_STARTED", "MESSAGE_COMPLETED"},
	} {
		spec.Check(t, statement+" are in the history", func(t *spec.T) {
			for _, name := range families {
				t.True(slices.Contains(kept, name), "%s is in %v", name, kept)
			}
		})
	}
	spec.Check(t, "seed-003#139: an operation's start and its meaningful statuses are in the history", func(t *spec.T) {
		t.Equal(len(only(p.history, "BACKGROUND_OPERATION_STARTED")), 1)
		of := only(p.history, "BACKGROUND_OPERATION_STATUS")
		t.Equal([]any{of[0]["statusMessage"], of[1]["status"]}, []any{"Indexing shard 3", "Completed"})
		t.Equal(len(of), 2)
	})
	spec.Check(t, "hpd-events#31: none of the live families is in the history, and all were shown", func(t *spec.T) {
		for _, e := range shown {
			name := e["type"].(string)
			t.True(slices.Contains(live, name), "%s was shown", name)
			t.True(name == "BACKGROUND_OPERATION_STATUS" || !slices.Contains(kept, name), "%s was not stored", name)
		}
		for _, name := range []string{"PERMISSION_REQUEST", "PERMISSION_RESPONSE", "CLIENT_TOOL_INVOKE_REQUEST", "CLIENT_TOOL_INVOKE_RESPONSE", "AGENT_REQUEST_STARTED"} {
			t.False(slices.Contains(kept, name), "%s was stored", name)
		}
		for _, e := range p.history {
			row, ok := branch.NewTable().Lookup(e["type"].(string))
			t.True(ok && row.Persistence != branch.Live, "%s may be stored", e["type"])
		}
	})
	spec.Check(t, "seed-003#140: no audio transcript is in the history", func(t *spec.T) {
		t.False(strings.Contains(strings.Join(kept, " "), "TRANSCRIPT"), "transcripts: %v", kept)
		t.True(slices.Contains(live, "USER_AUDIO_TRANSCRIPT_COMPLETED"), "they are live")
	})
	spec.Check(t, "hpd-events#34 seed-003#1: an object of the history is the envelope that was live", func(t *spec.T) {
		byID := map[any]object{}
		for _, e := range p.history {
			byID[e["eventId"]] = e
		}
		n := 0
		for _, e := range p.sse {
			if e["eventId"] != nil {
				t.Equal(byID[e["eventId"]], without(e, "traceId", "spanId", "metadata"))
				n++
			}
		}
		t.True(n > len(stored), "%d were compared", n)
	})
	spec.Check(t, "seed-003#1: SSE and WebSocket show the same", func(t *spec.T) {
		from := find(p.ws, "BRANCH_RUN_STARTED")
		t.Equal(p.ws[from:], p.sse)
	})
	spec.Check(t, "seed-003#3: every SSE event is one envelope with version and type", func(t *spec.T) {
		for _, f := range p.frames {
			t.Equal(strings.Count(f.raw, "data: "), 1)
			t.Equal(f.event["version"], any("1.0"))
			_, isText := f.event["type"].(string)
			t.True(isText, "%s", f.raw)
		}
	})
	spec.Check(t, "seed-003#4: every WebSocket frame is one envelope with version and type", func(t *spec.T) {
		for _, e := range p.ws {
			t.Equal(e["version"], any("1.0"))
			_, isText := e["type"].(string)
			t.True(isText, "%v", e)
		}
	})
	spec.Check(t, "seed-003#28: a live observer gets all of a live-only event", func(t *spec.T) {
		for _, want := range shown {
			got := only(p.sse, want["type"].(string))
			t.True(slices.ContainsFunc(got, func(e object) bool {
				for name, value := range want {
					if n, isInt := value.(int); isInt {
						value = float64(n)
					}
					if e[name] != value && name != "delay" && name != "duration" {
						return false
					}
				}
				return true
			}), "%v has all of %v", got, want)
		}
	})
	spec.Check(t, "seed-003#29: every event names its session and branch", func(t *spec.T) {
		for _, e := range slices.Concat(p.sse, p.ws, p.history) {
			t.Equal([]any{e["sessionId"], e["branchId"]}, []any{p.session, "main"})
		}
	})
	spec.Check(t, "seed-003#30: the persisted events of a turn share its flow", func(t *spec.T) {
		for _, e := range p.history[find(p.history, "BRANCH_RUN_STARTED"):] {
			t.Equal(e["eventFlowId"], any(p.turn))
		}
	})
	spec.Check(t, "seed-003#31: all events of a turn have one trace", func(t *spec.T) {
		want := p.sse[0]["traceId"].(string)
		t.Equal(len(want), 32)
		for _, e := range p.sse {
			t.Equal(e["traceId"], any(want))
		}
	})
	spec.Check(t, "seed-003#45 seed-003#49: a text input starts a run, and is itself not in the history", func(t *spec.T) {
		t.Equal(len(only(p.history, "BRANCH_RUN_STARTED")), 1)
		t.False(strings.Contains(strings.Join(kept, " "), "_INPUT"), "%v", kept)
		t.Equal(only(p.history, "TEXT_DELTA")[0]["text"], any("hi"))
	})
	spec.Check(t, "seed-003#115 seed-003#116: a request is answered over WebSocket, another by the route", func(t *spec.T) {
		t.Equal(p.work[0]["approved"], any(true))
		t.Equal(p.work[1]["content"], any([]any{object{"type": "text", "text": "opened"}}))
		t.Equal(len(only(p.sse, "AGENT_REQUEST_RESOLVED")), 2)
	})
	spec.Check(t, "seed-003#132: progress from inside a tool is on the live stream", func(t *spec.T) {
		e := only(p.sse, "TOOL_PROGRESS")[0]
		t.Equal([]any{e["callId"], e["message"], e["percentComplete"]}, []any{"c1", "half", 50.0})
	})
	t.Run("the run shows what was in its background", func(t *testing.T) {
		t.Parallel()
		c := &spec.T{T: t}
		runs := p.rig.do("GET", "/agents/far/sessions/"+p.session+"/branches/main/runs", nil).list()
		c.Equal(len(runs), 1)
		c.Equal(runs[0]["backgroundOperation"], any(object{"status": "Completed", "operationId": "o1", "statusMessage": "Indexing shard 3", "continuationToken": "dG9rZW4="}))
		var tasks []any
		for _, task := range runs[0]["backgroundTasks"].([]any) {
			tasks = append(tasks, task.(object)["taskId"], task.(object)["status"])
		}
		c.Equal(tasks, []any{"k1", "completed", "k2", "cancelled", "k3", "faulted"})
		c.Equal(p.rig.do("GET", "/agents/far/sessions/"+p.session+"/branches/main/runs/"+runs[0]["runtimeRunId"].(string), nil).object(), runs[0])
	})
}
