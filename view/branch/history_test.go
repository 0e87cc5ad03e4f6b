package branch_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/parley-hub/parley/conformance/spec"
	"github.com/parley-hub/parley/view/branch"
)

var sameMessage = cmpopts.IgnoreUnexported(branch.Content{})

// events makes a history from lines of a type and a payload.
func events(lines ...string) []branch.Event {
	var out []branch.Event
	for i, line := range lines {
		name, payload, _ := strings.Cut(line, " ")
		if payload == "" {
			payload = "{}"
		}
		out = append(out, branch.Event{Type: name, ID: fmt.Sprintf("%032x", i+1), Seq: uint64(i + 1), Data: []byte(payload)})
	}
	return out
}

func project(all []branch.Event) *branch.History {
	h := &branch.History{}
	for _, e := range all {
		h.Apply(e)
	}
	return h
}

// brief shows messages as one line each.
func brief(messages []branch.ChatMessage) []string {
	out := []string{}
	for _, m := range messages {
		line := m.MessageID + " " + m.Role + ":"
		for _, c := range m.Contents {
			data, err := json.Marshal(c)
			if err != nil {
				panic(err)
			}
			line += " " + string(data)
		}
		out = append(out, line)
	}
	return out
}

func TestProjection(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		log  []branch.Event
		want []string
	}{
		"streamed text and reasoning of one message": {
			events(`TEXT_MESSAGE_START {"messageId":"m","role":"assistant"}`, `REASONING_MESSAGE_START {"messageId":"m","role":"assistant"}`,
				`REASONING_DELTA {"messageId":"m","text":"hm"}`, `REASONING_DELTA {"messageId":"m","text":"m","protectedData":"x"}`, `REASONING_DELTA {"messageId":"m","text":"so"}`,
				`TEXT_DELTA {"messageId":"m","text":"Ki"}`, `TEXT_DELTA {"messageId":"m","text":"wi"}`, `TEXT_MESSAGE_END {"messageId":"m"}`),
			[]string{`m assistant: {"$type":"reasoning","text":"hmm","protectedData":"x"} {"$type":"reasoning","text":"so"} {"$type":"text","text":"Kiwi"}`},
		},
		"a delta without a start is the assistant's": {
			events(`TEXT_DELTA {"messageId":"m","text":"a"}`), []string{`m assistant: {"$type":"text","text":"a"}`},
		},
		"a user's text is put before what came first": {
			events(`MESSAGE_STARTED {"messageId":"m","role":"user"}`, `CONTENT_ADDED {"messageId":"m","content":{"$type":"hpd:image","uri":"x"}}`, `TEXT_DELTA {"messageId":"m","text":"see"}`, `TEXT_DELTA {"messageId":"m","text":"?"}`),
			[]string{`m user: {"$type":"text","text":"see?"} {"$type":"hpd:image","uri":"x"}`},
		},
		"a header that comes later keeps the contents": {
			events(`TEXT_DELTA {"messageId":"m","text":"a"}`, `MESSAGE_STARTED {"messageId":"m","role":"system"}`), []string{`m system: {"$type":"text","text":"a"}`},
		},
		"a call is part of its message at its end, its result a message of its own": {
			events(`TOOL_CALL_START {"callId":"c","name":"f","messageId":"m"}`, `TOOL_CALL_ARGS {"callId":"c","argsJson":"{\"a\":1.50}"}`, `TEXT_DELTA {"messageId":"m","text":"t"}`, `TOOL_CALL_END {"callId":"c"}`, `TOOL_CALL_END {"callId":"c"}`,
				`TOOL_CALL_RESULT {"callId":"c","result":{"text":"7","json":7}}`, `TOOL_CALL_RESULT {"callId":"d","result":{"text":"seven"},"messageId":"r"}`, `TOOL_CALL_RESULT {"callId":"e","result":{},"messageId":"r"}`),
			[]string{
				`m assistant: {"$type":"text","text":"t"} {"$type":"functionCall","callId":"c","name":"f","arguments":{"a":1.50}}`,
				`tool-c tool: {"$type":"functionResult","callId":"c","result":7}`,
				`r tool: {"$type":"functionResult","callId":"d","result":"seven"} {"$type":"functionResult","callId":"e"}`,
			},
		},
		"what is odd changes nothing": {
			events(`TEXT_DELTA {"messageId":5}`, `TEXT_DELTA nonsense`, `MESSAGE_STARTED {}`, `TOOL_CALL_START {}`, `BRANCH_HISTORY_COMPACTED []`, `NOVEL {"messageId":"m"}`, `CONTENT_ADDED {"content":5}`, `TOOL_CALL_END {"callId":"never"}`),
			[]string{},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := project(test.log)
			c := &spec.T{T: t}
			c.Equal(brief(h.Messages()), test.want)
			c.Equal(h.Count(), len(test.want))
		})
	}
	spec.Check(t, "hpd-events#48: a result without a message id is tool-{callId}", func(t *spec.T) {
		h := project(events(`TOOL_CALL_RESULT {"callId":"c9","result":{"text":"x"}}`))
		t.Equal(h.Messages()[0].MessageID, "tool-c9")
		t.Equal(h.Messages()[0].Role, "tool")
	})
	spec.Check(t, "seed-003#68: COMPACTION leaves the messages alone", func(t *spec.T) {
		h := project(events(`TEXT_DELTA {"messageId":"m","text":"a"}`, `COMPACTION {"status":"Performed","messagesRemoved":1,"durableCompactedMessageIds":["m"]}`))
		t.Equal(brief(h.Messages()), []string{`m assistant: {"$type":"text","text":"a"}`})
	})
	t.Run("messages of a turn name it", func(t *testing.T) {
		t.Parallel()
		log := events(`TEXT_DELTA {"messageId":"a","text":"a"}`, `MESSAGE_TURN_STARTED {"messageTurnId":"t1"}`, `TEXT_DELTA {"messageId":"b","text":"a"}`, `MESSAGE_TURN_FINISHED`,
			`MESSAGE_STARTED {"messageId":"c","role":"user","additionalProperties":{"x":1}}`)
		log[4].Flow = "t2"
		got := project(log).Messages()
		c := &spec.T{T: t}
		c.Equal([]string{string(got[0].Properties), string(got[1].Properties), string(got[2].Properties)}, []string{"", `{"hpd.messageTurnId":"t1"}`, `{"hpd.messageTurnId":"t2","x":1}`})
	})
	t.Run("branch fields, tree and state are replaced", func(t *testing.T) {
		t.Parallel()
		h := project(events(`BRANCH_CREATED {"name":"a","tags":["x"],"createdAt":"2025-01-01T00:00:00Z"}`, `BRANCH_METADATA_UPDATED {"description":"d","branchMetadata":{"k":1}}`,
			`BRANCH_TREE_UPDATED {"siblingIndex":1,"totalSiblings":2,"isOriginal":false,"childBranches":["x"]}`, `BRANCH_MIDDLEWARE_STATE_COMMITTED {"state":{"a":"1"}}`, `BRANCH_MIDDLEWARE_STATE_COMMITTED {"state":{"b":"2"}}`))
		c := &spec.T{T: t}
		c.Equal(h.Fields, branch.Fields{Description: new("d"), Metadata: branch.Raw(`{"k":1}`)})
		c.Equal(h.Tree.ChildBranches, []string{"x"})
		c.Equal(h.State, map[string]string{"b": "2"})
	})
}

func TestCompaction(t *testing.T) {
	t.Parallel()
	log := func(compacted string) []branch.Event {
		return events(`TEXT_DELTA {"messageId":"a","text":"1"}`, `TEXT_DELTA {"messageId":"b","text":"2"}`, `TEXT_DELTA {"messageId":"c","text":"3"}`, `TEXT_DELTA {"messageId":"d","text":"4"}`, "BRANCH_HISTORY_COMPACTED "+compacted)
	}
	ids := func(h *branch.History) string {
		var out []string
		for _, m := range h.Messages() {
			out = append(out, m.MessageID)
		}
		return strings.Join(out, " ")
	}
	spec.Check(t, "hpd-events#45: an empty durable list changes nothing", func(t *spec.T) {
		for _, list := range []string{`[]`, `["", " "]`, `null`} {
			h := project(log(`{"compactionId":"k","modelCompactedMessageIds":["a","b"],"durableCompactedMessageIds":` + list + `,"replacementMessages":[{"messageId":"s","text":"x"}],"compactedAt":"2025-01-01T00:00:00Z"}`))
			t.Equal(ids(h), "a b c d")
			t.True(h.Compacted.IsZero(), "activity is unchanged")
		}
	})
	spec.Check(t, "hpd-events#46 seed-003#129: replacements stand where the first removed message was", func(t *spec.T) {
		h := project(log(`{"compactionId":"k","durableCompactedMessageIds":["d","b"],"replacementMessages":[{"messageId":"s","role":"system","text":"sum"},{"text":"more"}],"compactedAt":"2025-01-01T00:00:00Z"}`))
		t.Equal(ids(h), "a s compaction-k-1 c")
		t.Equal(brief(h.Messages())[1], `s system: {"$type":"text","text":"sum"}`)
		t.Equal(h.Compacted, time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC))
		h.Apply(events(`TEXT_DELTA {"messageId":"b","text":"again"}`)[0])
		t.Equal(ids(h), "a s compaction-k-1 c b")
	})
	spec.Check(t, "seed-003#129: without replacements the messages are just gone", func(t *spec.T) {
		t.Equal(ids(project(log(`{"durableCompactedMessageIds":["a","b"]}`))), "c d")
		t.Equal(ids(project(log(`{"durableRemovedMessageIds":["a","b"]}`))), "c d")
	})
	spec.Check(t, "hpd-events#46: none of the removed is there, so the replacements are last", func(t *spec.T) {
		t.Equal(ids(project(log(`{"durableCompactedMessageIds":["x"],"replacementMessages":[{"messageId":"s","text":"x"}]}`))), "a b c d s")
	})
}

func types(drafts []branch.Draft) string {
	var out []string
	for _, d := range drafts {
		out = append(out, d.Type)
	}
	return strings.Join(out, " ")
}

func expand(t *spec.T, text string) []branch.Draft {
	t.Helper()
	var m branch.ChatMessage
	t.NoError(json.Unmarshal([]byte(text), &m))
	drafts, err := branch.Expand(&m)
	t.NoError(err)
	return drafts
}

func TestExpand(t *testing.T) {
	t.Parallel()
	spec.Check(t, "hpd-events#41: a user's text", func(t *spec.T) {
		drafts := expand(t, `{"messageId":"m","text":"hi"}`)
		t.Equal(types(drafts), "MESSAGE_STARTED TEXT_MESSAGE_START TEXT_DELTA TEXT_MESSAGE_END MESSAGE_COMPLETED")
		t.Equal(string(drafts[0].Data), `{"messageId":"m","role":"user"}`)
		t.Equal(string(drafts[1].Data), `{"messageId":"m","role":"user"}`)
		t.Equal(string(drafts[2].Data), `{"messageId":"m","text":"hi"}`)
		t.Equal(string(drafts[4].Data), `{"messageId":"m"}`)
	})
	spec.Check(t, "hpd-events#42: an image is added as content", func(t *spec.T) {
		drafts := expand(t, `{"messageId":"m","contents":[{"$type":"text","text":""},{"$type":"hpd:image","mediaType":"image/png","uri":"hpd-content://x"},{"$type":"novel","z":[1.50]}]}`)
		t.Equal(types(drafts), "MESSAGE_STARTED TEXT_MESSAGE_START TEXT_MESSAGE_END CONTENT_ADDED CONTENT_ADDED MESSAGE_COMPLETED")
		t.Equal(string(drafts[3].Data), `{"messageId":"m","content":{"$type":"hpd:image","mediaType":"image/png","uri":"hpd-content://x"}}`)
		t.Equal(string(drafts[4].Data), `{"messageId":"m","content":{"$type":"novel","z":[1.50]}}`)
	})
	spec.Check(t, "hpd-events#43: text is never content too, and adjacent texts are one", func(t *spec.T) {
		drafts := expand(t, `{"messageId":"m","contents":[{"$type":"text","text":"a"},{"$type":"text","text":"b"},{"$type":"reasoning","text":"r","protectedData":"p"},{"$type":"text","text":"c"}]}`)
		t.Equal(types(drafts), "MESSAGE_STARTED TEXT_MESSAGE_START TEXT_DELTA TEXT_MESSAGE_END REASONING_MESSAGE_START REASONING_DELTA REASONING_MESSAGE_END TEXT_MESSAGE_START TEXT_DELTA TEXT_MESSAGE_END MESSAGE_COMPLETED")
		t.Equal(string(drafts[2].Data), `{"messageId":"m","text":"ab"}`)
		t.Equal(string(drafts[5].Data), `{"messageId":"m","text":"r","protectedData":"p"}`)
	})
	t.Run("calls and results", func(t *testing.T) {
		t.Parallel()
		c := &spec.T{T: t}
		drafts := expand(c, `{"messageId":"m","role":"assistant","contents":[{"$type":"functionCall","callId":"c","name":"f","arguments":{"a":1}},{"$type":"functionCall","callId":"d","name":"g"}]}`)
		c.Equal(types(drafts), "MESSAGE_STARTED TOOL_CALL_START TOOL_CALL_ARGS TOOL_CALL_END TOOL_CALL_START TOOL_CALL_ARGS TOOL_CALL_END MESSAGE_COMPLETED")
		c.Equal(string(drafts[2].Data), `{"callId":"c","argsJson":"{\"a\":1}"}`)
		c.Equal(string(drafts[5].Data), `{"callId":"d","argsJson":"{}"}`)
		drafts = expand(c, `{"messageId":"r","role":"tool","contents":[{"$type":"functionResult","callId":"c","result":"x"},{"$type":"functionResult","callId":"d","result":{"a":1}},{"$type":"functionResult","callId":"e"}]}`)
		c.Equal(string(drafts[1].Data), `{"messageId":"r","callId":"c","result":{"text":"x","json":"x"}}`)
		c.Equal(string(drafts[2].Data), `{"messageId":"r","callId":"d","result":{"text":"{\"a\":1}","json":{"a":1}}}`)
		c.Equal(string(drafts[3].Data), `{"messageId":"r","callId":"e","result":{}}`)
		_, err := branch.Expand(&branch.ChatMessage{Role: "user"})
		c.ErrorContains(err, "needs an id")
	})
}

// fork writes messages into a new history, as a fork does.
func fork(t *spec.T, messages []branch.ChatMessage) []branch.Event {
	t.Helper()
	var out []branch.Event
	for _, m := range messages {
		drafts, err := branch.Expand(&m)
		t.NoError(err)
		for _, d := range drafts {
			out = append(out, branch.Event{Type: d.Type, Data: d.Data, Seq: uint64(len(out) + 1)})
		}
	}
	return out
}

func TestForks(t *testing.T) {
	t.Parallel()
	source := project(events(`BRANCH_RUN_STARTED {"runtimeRunId":"r"}`, `MESSAGE_TURN_STARTED {"messageTurnId":"t1"}`,
		`MESSAGE_STARTED {"messageId":"u","role":"user","authorName":"ines","createdAt":"2025-01-01T00:00:00Z","clientInputId":"i","additionalProperties":{"k":"v"}}`, `TEXT_DELTA {"messageId":"u","text":"hi"}`, `MESSAGE_COMPLETED {"messageId":"u"}`,
		`TEXT_MESSAGE_START {"messageId":"m","role":"assistant"}`, `TEXT_DELTA {"messageId":"m","text":"Ki"}`, `TEXT_DELTA {"messageId":"m","text":"wi"}`,
		`TOOL_CALL_START {"callId":"c","name":"f","messageId":"m","callType":"MCPServer","toolHarnessName":"h"}`, `TOOL_CALL_ARGS {"callId":"c","argsJson":"not json"}`, `TOOL_CALL_END {"callId":"c"}`,
		`TOOL_CALL_RESULT {"callId":"c","result":{"content":[{"type":"text","text":"x"}],"resultType":"T"}}`, `TEXT_DELTA {"messageId":"late","text":"not copied"}`, `BRANCH_RUN_COMPLETED {"runtimeRunId":"r"}`))
	spec.Check(t, "hpd-events#64 hpd-events#65: through and including the message, under the same ids", func(t *spec.T) {
		messages, index, ok := source.Through("tool-c")
		t.True(ok, "the message is there")
		t.Equal(index, 2)
		copied := project(fork(t, messages))
		t.Equal(brief(copied.Messages()), brief(messages))
		t.Equal(copied.Messages(), messages, sameMessage)
		t.Equal([]string{messages[0].MessageID, messages[1].MessageID, messages[2].MessageID}, []string{"u", "m", "tool-c"})
		_, _, ok = source.Through("m-99")
		t.False(ok, "a message that is not there is found")
	})
	spec.Check(t, "hpd-events#67: run events are not copied", func(t *spec.T) {
		messages, _, _ := source.Through("late")
		for _, e := range fork(t, messages) {
			t.False(strings.HasPrefix(e.Type, "BRANCH_RUN") || strings.HasPrefix(e.Type, "MESSAGE_TURN"), "%s is copied", e.Type)
		}
	})
	t.Run("a copy keeps what contents cannot say, and costs what messages cost", func(t *testing.T) {
		t.Parallel()
		c := &spec.T{T: t}
		messages, _, _ := source.Through("tool-c")
		copied := fork(c, messages)
		text := ""
		for _, e := range copied {
			text += string(e.Data)
		}
		c.Contains(text, `"callType":"MCPServer"`, `"resultType":"T"`, `"argsJson":"not json"`, `{"messageId":"m","text":"Kiwi"}`)
		c.Equal(len(copied), 5+8+3)
	})
}

// Messages survive being written as events and projected again.
func TestLawExpandThenProject(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`[a-zé"\\ ]{1,8}`)
		calls := 0
		content := rapid.Custom(func(t *rapid.T) branch.Content {
			calls++
			id := fmt.Sprintf("c%d", calls)
			switch rapid.IntRange(0, 5).Draw(t, "kind") {
			case 0:
				return branch.Text(text.Draw(t, "text"))
			case 1:
				return branch.Content{Type: branch.ReasoningContent, Text: new(text.Draw(t, "text")), ProtectedData: new("p")}
			case 2:
				return branch.Content{Type: branch.FunctionCallContent, CallID: &id, Name: new("f"), Arguments: branch.Raw(`{"a":1.50}`)}
			case 3:
				return branch.Content{Type: branch.FunctionResultContent, CallID: &id, Result: branch.Raw(rapid.SampledFrom([]string{`"x"`, `7`, `{"a":[1.50]}`}).Draw(t, "result"))}
			case 4:
				return branch.Content{Type: "hpd:image", URI: new("hpd-content://x")}
			}
			return branch.Content{Type: branch.ErrorContent, Message: new("bad")}
		})
		var all []branch.ChatMessage
		for i := range rapid.IntRange(1, 5).Draw(t, "messages") {
			m := branch.ChatMessage{MessageID: fmt.Sprintf("m%d", i), Role: rapid.SampledFrom([]string{"user", "assistant", "tool", "system"}).Draw(t, "role"), Contents: []branch.Content{}}
			for _, c := range rapid.SliceOfN(content, 0, 4).Draw(t, "contents") {
				last := len(m.Contents) - 1
				if last >= 0 && c.Type == branch.TextContent && m.Contents[last].Type == branch.TextContent {
					continue // adjacent texts become one
				}
				if m.Role == "user" && c.Type == branch.TextContent && last >= 0 {
					continue // a user's text is first
				}
				m.Contents = append(m.Contents, c)
			}
			all = append(all, m)
		}
		h := &branch.History{}
		for _, m := range all {
			drafts, err := branch.Expand(&m)
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range drafts {
				h.Apply(branch.Event{Type: d.Type, Data: d.Data})
			}
		}
		if got, want := strings.Join(brief(h.Messages()), "\n"), strings.Join(brief(all), "\n"); got != want {
			t.Fatalf("projects to\n%s\nwant\n%s", got, want)
		}
	})
}
