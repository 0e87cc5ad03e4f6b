package wire_test

import (
	"bytes"
	"fmt"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/parley-hub/parley/conformance/spec"
	"github.com/parley-hub/parley/dialect/hpd/wire"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/view/branch"
)

var (
	registry  = wire.NewRegistry(nil)
	sameEvent = cmpopts.IgnoreUnexported(branch.Content{})
)

func base() wire.Base {
	return wire.Base{
		EventID: "0123456789abcdef0123456789abcdef", Scope: wire.Scope{Session: "s-7", Branch: "main"}, EventFlowID: "turn-1",
		TraceID: "5f0c9b1e7a2d4c3388e1d0b6a9f4c217", SpanID: "5f0c9b1e7a2d4c33", ParentSpanID: "88e1d0b6a9f4c217",
		Metadata: branch.RootAgent("root", "Root").Child("kid", "Kid"),
		Channel:  branch.Interactive, Kind: branch.ControlKind, Direction: branch.Upstream, SequenceNumber: 42,
		MustSurvive: true, Timestamp: "2025-03-02T09:15:04.1180000+00:00", ExchangeTimestampNs: 17,
	}
}

func write(t *testing.T, e *wire.Event, surface wire.Surface) string {
	t.Helper()
	text, err := e.Append(nil, surface)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func read(t *testing.T, text string) *wire.Event {
	t.Helper()
	e, err := registry.Parse([]byte(text), wire.Limits{})
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return e
}

func TestEveryTypeRoundTrips(t *testing.T) {
	t.Parallel()
	for _, row := range branch.Rows() {
		t.Run(row.Type, func(t *testing.T) {
			t.Parallel()
			for _, surface := range []wire.Surface{wire.Branches, wire.Threads} {
				sent := &wire.Event{Base: base(), Payload: filled(row.Type)}
				text := write(t, sent, surface)
				if diff := cmp.Diff(sent, read(t, text), sameEvent); diff != "" {
					t.Errorf("reads differently (-sent +read):\n%s\n%s", diff, text)
				}
				// Optional members that are unset are not written.
				bare := &wire.Event{Payload: wire.Zero(row.Type)}
				if strings.Contains(write(t, bare, surface), "null") {
					t.Errorf("writes a null: %s", write(t, bare, surface))
				}
			}
		})
	}
}

// Names of members are camelCase in every type, and no payload has a member with
// the meaning of a base field.
func TestMemberNames(t *testing.T) {
	t.Parallel()
	camel := regexp.MustCompile(`^[a-z][a-zA-Z0-9]*$`)
	screaming := regexp.MustCompile(`^[A-Z][A-Z0-9]*(_[A-Z0-9]+)*$`)
	isBase := map[string]bool{
		"version": true, "type": true, "eventId": true, "sessionId": true, "branchId": true, "eventFlowId": true, "traceId": true,
		"spanId": true, "parentSpanId": true, "metadata": true, "channel": true, "kind": true, "direction": true, "sequenceNumber": true,
		"canInterrupt": true, "timestamp": true, "exchangeTimestampNs": true,
	}
	for _, row := range branch.Rows() {
		spec.Check(t, "hpd-events#6 seed-003#9: camelCase names in "+row.Type, func(t *spec.T) {
			kind := reflect.TypeOf(wire.Zero(row.Type))
			for field := range kind.Fields() {
				name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
				if name == "" {
					continue
				}
				t.True(camel.MatchString(name), "%s is camelCase", name)
				t.False(isBase[name], "%s is a base field", name)
			}
			t.True(screaming.MatchString(row.Type), "%s is SCREAMING_SNAKE_CASE", row.Type)
		})
	}
	spec.Check(t, "seed-003#8: the name is the event's without its ending", func(t *spec.T) {
		t.Equal(wire.TypeName("TextDeltaEvent"), "TEXT_DELTA")
		t.Equal(wire.TypeName("CargoManifestReadyEvent"), "CARGO_MANIFEST_READY")
		t.Equal(wire.TypeName("PDFReadyEvent"), "PDFREADY")
		for _, row := range branch.Rows() {
			t.Equal(wire.Zero(row.Type).EventType(), row.Type)
			class := reflect.TypeOf(wire.Zero(row.Type)).Name()
			if !strings.HasPrefix(class, "PII") {
				t.Equal(wire.TypeName(class+"Event"), row.Type)
			}
		}
	})
}

func TestLiveEnvelope(t *testing.T) {
	t.Parallel()
	delta := &wire.Event{Base: wire.Base{Scope: wire.Scope{Session: "s-7", Branch: "main"}, SequenceNumber: 42}, Payload: wire.TextDelta{Text: "Kiwi is ", MessageID: "m-31"}}
	spec.Check(t, "hpd-events#2 seed-003#6: version and type come first, in one flat object", func(t *spec.T) {
		t.Equal(write(t.T, delta, wire.Branches), `{"version":"1.0","type":"TEXT_DELTA","text":"Kiwi is ","messageId":"m-31","sessionId":"s-7","branchId":"main","channel":"Streaming","sequenceNumber":42}`)
		for _, row := range branch.Rows() {
			text := write(t.T, &wire.Event{Base: base(), Payload: filled(row.Type)}, wire.Branches)
			t.True(strings.HasPrefix(text, `{"version":"1.0","type":"`+row.Type+`"`), "%s begins with both", text)
			t.False(strings.ContainsAny(text, "\n\r"), "%s has a line break", text)
		}
	})
	spec.Check(t, "seed-003#5 seed-003#42: a producer that sets neither gets both", func(t *spec.T) {
		text := write(t.T, &wire.Event{Payload: wire.TextMessageEnd{MessageID: "m"}}, wire.Branches)
		t.Equal(text, `{"version":"1.0","type":"TEXT_MESSAGE_END","messageId":"m","channel":"Streaming"}`)
	})
	spec.Check(t, "seed-003#7: a TEXT_DELTA parses back to the same event", func(t *spec.T) {
		t.Equal(read(t.T, write(t.T, delta, wire.Branches)).Payload, delta.Payload)
	})
	spec.Check(t, "hpd-events#3 seed-003#10: null members are absent", func(t *spec.T) {
		text := write(t.T, &wire.Event{Payload: wire.BranchRunCompleted{RuntimeRunID: "r", AgentID: "a"}}, wire.Branches)
		t.Equal(text, `{"version":"1.0","type":"BRANCH_RUN_COMPLETED","runtimeRunId":"r","agentId":"a","cancelled":false,"channel":"Control","kind":"Lifecycle"}`)
		e := read(t.T, `{"type":"BRANCH_RUN_COMPLETED","runtimeRunId":"r","agentId":"a","errorType":null,"sessionId":null,"later":null}`)
		t.Equal(write(t.T, e, wire.Branches), text)
		result := `{"type":"TOOL_CALL_RESULT","callId":"c","result":{"text":"ok","json":%s,"content":null},"name":null}`
		t.Contains(write(t.T, read(t.T, fmt.Sprintf(result, "null")), wire.Branches), `"result":{"text":"ok"}`)
		t.Contains(write(t.T, read(t.T, fmt.Sprintf(result, `{"a":null}`)), wire.Branches), `"result":{"text":"ok","json":{"a":null}}`)
	})
	spec.Check(t, "hpd-events#4: an empty string is kept", func(t *spec.T) {
		t.Contains(write(t.T, &wire.Event{Payload: wire.TextDelta{MessageID: "m"}}, wire.Branches), `"text":""`)
		e := read(t.T, `{"type":"PERMISSION_REQUEST","permissionId":"p","description":""}`)
		t.Contains(write(t.T, e, wire.Branches), `"description":""`)
	})
	spec.Check(t, "hpd-events#5: false, zero and empty lists are kept", func(t *spec.T) {
		t.Contains(write(t.T, &wire.Event{Payload: wire.BranchRunCompleted{}}, wire.Branches), `"cancelled":false`)
		t.Contains(write(t.T, &wire.Event{Payload: wire.AgentTurnStarted{}}, wire.Branches), `"iteration":0`)
		e := read(t.T, `{"type":"CLARIFICATION_REQUEST","requestId":"r","options":[]}`)
		t.Contains(write(t.T, e, wire.Branches), `"options":[]`)
		t.Contains(write(t.T, &wire.Event{Payload: wire.BranchTreeUpdated{}}, wire.Branches), `"childBranches":[]`, `"siblingIndex":0`, `"isOriginal":false`)
		t.Contains(write(t.T, &wire.Event{Payload: wire.BranchMiddlewareStateCommitted{}}, wire.Branches), `"state":{}`)
	})
	spec.Check(t, "seed-003#43: base fields are there when the event has them", func(t *spec.T) {
		t.Contains(write(t.T, &wire.Event{Base: base(), Payload: wire.AgentTurnStarted{}}, wire.Branches),
			`"eventId":"0123456789abcdef0123456789abcdef"`, `"sessionId":"s-7"`, `"branchId":"main"`, `"eventFlowId":"turn-1"`, `"traceId":"5f0c`, `"spanId":"5f0c`,
			`"parentSpanId":"88e1`, `"channel":"Interactive"`, `"kind":"Control"`, `"direction":"Upstream"`, `"sequenceNumber":42`, `"canInterrupt":false`,
			`"timestamp":"2025-03-02T09:15:04.1180000+00:00"`, `"exchangeTimestampNs":17`)
	})
	spec.Check(t, "hpd-events#29 seed-003#33: metadata names the emitting agent", func(t *spec.T) {
		t.Contains(write(t.T, &wire.Event{Base: base(), Payload: wire.AgentTurnStarted{}}, wire.Branches),
			`"metadata":{"agentName":"Kid","agentId":"kid","parentAgentId":"root","agentChain":["Root","Kid"],"depth":1,"isSubAgent":true}`)
		t.Equal(read(t.T, write(t.T, &wire.Event{Base: base(), Payload: wire.AgentTurnStarted{}}, wire.Branches)).Metadata, base().Metadata)
		t.Contains(write(t.T, &wire.Event{Base: wire.Base{Metadata: branch.RootAgent("root", "Root")}, Payload: wire.AgentTurnStarted{}}, wire.Branches),
			`"metadata":{"agentName":"Root","agentId":"root","agentChain":["Root"],"depth":0,"isSubAgent":false}`)
	})
}

func TestParse(t *testing.T) {
	t.Parallel()
	spec.Check(t, "hpd-events#7: a lower-case type parses", func(t *spec.T) {
		t.Equal(read(t.T, `{"type":"text_delta","text":"a","messageId":"m"}`).Payload, wire.Payload(wire.TextDelta{Text: "a", MessageID: "m"}))
		t.Equal(read(t.T, `{"type":"Thread_Run_Completed","runtimeRunId":"m"}`).Payload.EventType(), branch.BranchRunCompleted)
	})
	spec.Check(t, "hpd-events#8: version is neither needed nor checked", func(t *spec.T) {
		want := wire.Payload(wire.TextMessageEnd{MessageID: "m"})
		t.Equal(read(t.T, `{"type":"TEXT_MESSAGE_END","messageId":"m"}`).Payload, want)
		t.Equal(read(t.T, `{"messageId":"m","version":7,"type":"TEXT_MESSAGE_END"}`).Payload, want)
	})
	spec.Check(t, "hpd-events#9: unknown members are no error", func(t *spec.T) {
		e := read(t.T, `{"type":"TEXT_MESSAGE_END","messageId":"m","novel":{"a": [1.50, null]}}`)
		t.Equal(e.Payload.EventType(), branch.TextMessageEnd)
		t.Contains(write(t.T, e, wire.Branches), `"novel":{"a":[1.50,null]}`)
	})
	refused := map[string]string{
		`{}`: "no `type`", `[]`: "not an array", `"x"`: "not a string", `17`: "not a number", `null`: "not null",
		`{"type":null}`: "`type` is null", `{"type":5}`: "`type` is a number", `{"type":""}`: "no `type`", `{"type":"x"`: "not valid", ``: "not valid",
		`{"type":"TEXT_MESSAGE_END","messageId":"m"} {}`: "follows", `{"type":"TEXT_MESSAGE_END","type":"TEXT_MESSAGE_END","messageId":"m"}`: "duplicate",
		"{\"type\":\"TEXT_MESSAGE_END\",\"messageId\":\"\xff\"}": "UTF-8",
	}
	for text, fragment := range refused {
		name := "hpd-events#10"
		switch text {
		case `{}`, `{"type":null}`:
			name += " seed-003#12"
		}
		spec.Check(t, name+": an event is refused, "+strings.ToValidUTF8(text, "?"), func(t *spec.T) {
			_, err := registry.Parse([]byte(text), wire.Limits{})
			t.ErrorContains(err, fragment)
			t.Equal(fault.CodeOf(err), fault.Invalid)
		})
	}
	spec.Check(t, "seed-003#11 seed-003#15: an unknown type is no event", func(t *spec.T) {
		_, err := registry.Parse([]byte(`{"type":"CARGO_MANIFEST_READY","cargo":1}`), wire.Limits{})
		t.ErrorContains(err, "CARGO_MANIFEST_READY", "not registered")
		t.Equal(fault.CodeOf(err), fault.Invalid)
	})
	t.Run("a member of wrong type, or one that is needed and missing, is refused", func(t *testing.T) {
		t.Parallel()
		for text, fragment := range map[string]string{
			`{"type":"TEXT_DELTA","text":5,"messageId":"m"}`:                     "/text",
			`{"type":"TEXT_DELTA","text":"x"}`:                                   "lacks `messageId`",
			`{"type":"TEXT_DELTA","text":"x","messageId":null}`:                  "lacks `messageId`",
			`{"type":"CLIENT_TOOL_INVOKE_REQUEST","requestId":"r"}`:              "lacks `toolName`",
			`{"type":"CLIENT_TOOL_INVOKE_REQUEST","requestId":1,"toolName":"x"}`: "/requestId",
			`{"type":"TEXT_MESSAGE_END","messageId":"m","timestamp":"noon"}`:     "`timestamp`",
			`{"type":"TEXT_MESSAGE_END","messageId":"m","channel":9}`:            "`channel`",
			`{"type":"TEXT_MESSAGE_END","messageId":"m","sequenceNumber":-1}`:    "`sequenceNumber`",
			`{"type":"INTERRUPTION_REQUEST","source":"Ghost"}`:                   "User, System, Parent, Middleware",
			`{"type":"INTERRUPTION_REQUEST","source":4}`:                         "0 to 3",
		} {
			_, err := registry.Parse([]byte(text), wire.Limits{})
			(&spec.T{T: t}).ErrorContains(err, fragment)
			if fault.CodeOf(err) != fault.Invalid {
				t.Errorf("%s: %v", text, fault.CodeOf(err))
			}
		}
	})
	t.Run("bounds", func(t *testing.T) {
		t.Parallel()
		c := &spec.T{T: t}
		long := `{"type":"TEXT_DELTA","messageId":"m","text":"` + strings.Repeat("x", 100) + `"}`
		_, err := registry.Parse([]byte(long), wire.Limits{Bytes: 100})
		c.ErrorContains(err, "at most 100")
		c.Equal(fault.CodeOf(err), fault.TooLarge)
		_, err = registry.Parse([]byte(`{"type":"TEXT_MESSAGE_END","messageId":"m","x":`+strings.Repeat("[", 8)+strings.Repeat("]", 8)+`}`), wire.Limits{Depth: 8})
		c.ErrorContains(err, "more than 8 deep")
		_, err = registry.Parse([]byte(`{"type":"TEXT_MESSAGE_END","messageId":"m","x":"`+strings.Repeat("[", 80)+`\""}`), wire.Limits{Depth: 8})
		c.NoError(err)
		_, err = registry.Parse([]byte(`{"type":"A","x":`+strings.Repeat("[", 100_000)), wire.Limits{})
		c.ErrorContains(err, "more than 64 deep")
	})
	t.Run("older and the other surface's names are read", func(t *testing.T) {
		t.Parallel()
		c := &spec.T{T: t}
		e := read(t, `{"type":"TOOL_CALL_START","callId":"c","name":"n","harnessName":"h","streamId":"f","threadId":"b"}`)
		c.Equal(e.Payload, wire.Payload(wire.ToolCallStart{CallID: "c", Name: "n", ToolHarnessName: new("h")}))
		c.Equal(e.EventFlowID, "f")
		c.Equal(e.Scope.Branch, "b")
		c.Equal(read(t, `{"type":"TOOL_CALL_START","callId":"c","name":"n","toolharnessName":"h"}`).Payload, e.Payload)
		compacted := read(t, `{"type":"THREAD_HISTORY_COMPACTED","modelReducedMessageIds":["a"],"durableRemovedMessageIds":["b"]}`).Payload.(wire.BranchHistoryCompacted)
		c.Equal(compacted.ModelCompactedMessageIDs, []string{"a"})
		c.Equal(compacted.DurableCompactedMessageIDs, []string{"b"})
		c.Equal(read(t, `{"type":"BIDIRECTIONAL_EVENT_PROCESSED"}`).Payload.EventType(), branch.RequestEventProcessed)
		c.Equal(read(t, `{"type":"HISTORY_REDUCTION_CACHE"}`).Payload.EventType(), branch.CompactionCache)
	})
}

func TestEnums(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{"type":"INTERRUPTION_REQUEST","source":0}`:                                `"source":"User"`,
		`{"type":"INTERRUPTION_REQUEST","source":"User"}`:                           `"source":"User"`,
		`{"type":"INTERRUPTION_REQUEST","source":"middleWARE"}`:                     `"source":"Middleware"`,
		`{"type":"PERMISSION_RESPONSE","permissionId":"p","choice":0}`:              `"choice":"ask"`,
		`{"type":"PERMISSION_RESPONSE","permissionId":"p","choice":"Ask"}`:          `"choice":"ask"`,
		`{"type":"PERMISSION_RESPONSE","permissionId":"p","choice":1}`:              `"choice":"allow_always"`,
		`{"type":"PERMISSION_RESPONSE","permissionId":"p","choice":"allow_always"}`: `"choice":"allow_always"`,
		`{"type":"PERMISSION_RESPONSE","permissionId":"p","choice":"AlwaysAllow"}`:  `"choice":"allow_always"`,
		`{"type":"PERMISSION_RESPONSE","permissionId":"p","choice":"AlwaysDeny"}`:   `"choice":"deny_always"`,
		`{"type":"PERMISSION_RESPONSE","permissionId":"p","choice":2}`:              `"choice":"deny_always"`,
		`{"type":"WORKFLOW_DIAGNOSTIC","workflowName":"w","level":5}`:               `"level":"Critical"`,
		`{"type":"BACKGROUND_OPERATION_STATUS","status":{"value":"completed"}}`:     `"status":"Completed"`,
		`{"type":"BACKGROUND_OPERATION_STATUS","status":3}`:                         `"status":"Failed"`,
		`{"type":"TEXT_MESSAGE_END","messageId":"m","channel":3}`:                   `"channel":"Control"`,
		`{"type":"TEXT_MESSAGE_END","messageId":"m","kind":"diagnostic"}`:           `"kind":"Diagnostic"`,
		`{"type":"TEXT_MESSAGE_END","messageId":"m","direction":1}`:                 `"direction":"Upstream"`,
		`{"type":"AGENT_REQUEST_STARTED","requestId":"r","responsePolicy":1}`:       `"responsePolicy":"targetedResponder"`,
		`{"type":"AGENT_RESPONSE_REJECTED","requestId":"r","status":7}`:             `"status":"ambiguousRequest"`,
		`{"type":"TOOL_CALL_START","callId":"c","name":"n","callType":"subagent"}`:  `"callType":"SubAgent"`,
	} {
		spec.Check(t, "hpd-events#13: enums are read from "+text, func(t *spec.T) {
			t.Contains(write(t.T, read(t.T, text), wire.Branches), want)
		})
	}
	spec.Check(t, "seed-003#78: CacheHit is a status and parses", func(t *spec.T) {
		for _, text := range []string{`"CacheHit"`, `"cachehit"`, `2`} {
			got := read(t.T, `{"type":"COMPACTION","status":`+text+`}`).Payload.(wire.Compaction)
			t.Equal(got.Status, wire.CacheHit)
		}
	})
}

func TestDurations(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{
		"00:00:02.5000000":  2500 * time.Millisecond,
		"00:00:00":          0,
		"01:02:03":          time.Hour + 2*time.Minute + 3*time.Second,
		"3.04:05:06":        76*time.Hour + 5*time.Minute + 6*time.Second,
		"-00:00:00.0000001": -100,
	} {
		spec.Check(t, "hpd-events#16: the duration "+text, func(t *spec.T) {
			got, err := wire.ParseDuration(text)
			t.NoError(err)
			t.Equal(time.Duration(got), want)
			t.Equal(wire.Duration(want).String(), text)
			t.Contains(write(t.T, &wire.Event{Payload: wire.AgentCompletion{Duration: got}}, wire.Branches), `"duration":"`+text+`"`)
		})
	}
	c := &spec.T{T: t}
	for _, text := range []string{"", "1", "00:00", "24:00:00", "00:60:00", "00:00:60", "00:00:00.", "00:00:00.12345678", "x.00:00:00", "--00:00:00", "999999.00:00:00", "PT2M", "+1.00:00:00"} {
		_, err := wire.ParseDuration(text)
		c.ErrorContains(err, "hh:mm:ss")
	}
	got, err := wire.ParseDuration("00:00:00.5")
	c.NoError(err)
	c.Equal(time.Duration(got), 500*time.Millisecond)
	c.Equal(wire.Duration(-1<<63).String(), "-106751.23:47:16.8547758")
}

type cargo struct {
	Tons  int64    `json:"tons" need:"true"`
	Ports []string `json:"ports"`
}

func (cargo) EventType() string { return "CARGO_MANIFEST_READY" }

func TestCustomEvents(t *testing.T) {
	t.Parallel()
	spec.Check(t, "seed-003#16 hpd-events#14: a registered custom type round-trips", func(t *spec.T) {
		r := wire.NewRegistry(nil)
		t.NoError(wire.RegisterType[cargo](r, false))
		sent := &wire.Event{Base: base(), Payload: cargo{Tons: 1 << 60, Ports: []string{"Rostock"}}}
		text := write(t.T, sent, wire.Branches)
		t.True(strings.HasPrefix(text, `{"version":"1.0","type":"CARGO_MANIFEST_READY","tons":1152921504606846976,"ports":["Rostock"]`), "%s", text)
		got, err := r.Parse([]byte(text), wire.Limits{})
		t.NoError(err)
		t.Equal(got, sent)
		_, err = r.Parse([]byte(`{"type":"cargo_manifest_ready","harnessName":"mine"}`), wire.Limits{})
		t.ErrorContains(err, "lacks `tons`")
	})
	spec.Check(t, "hpd-events#15 seed-003#17: a second registration of a name fails", func(t *spec.T) {
		r := wire.NewRegistry(nil)
		t.NoError(wire.RegisterType[cargo](r, false))
		t.ErrorContains(wire.RegisterType[cargo](r, true), "CARGO_MANIFEST_READY", "registered already")
		for _, taken := range []string{"TEXT_DELTA", "THREAD_CREATED", "HISTORY_REDUCTION_CACHE", "CARGO_MANIFEST_READY"} {
			err := r.Register(wire.Custom{Type: taken})
			t.ErrorContains(err, "registered already")
			t.Equal(fault.CodeOf(err), fault.Conflict)
		}
		for _, invalid := range []string{"", "lower", "1X", "A-B", strings.Repeat("A", 129)} {
			t.ErrorContains(r.Register(wire.Custom{Type: invalid}), "not valid")
		}
	})
	spec.Check(t, "seed-003#17: a codec of one's own reads and refuses", func(t *spec.T) {
		r := wire.NewRegistry(nil)
		t.NoError(r.Register(wire.Custom{Type: "PING", Read: func(data []byte) (wire.Payload, error) {
			if !bytes.Contains(data, []byte("pong")) {
				return nil, fault.New(fault.Invalid, "no pong")
			}
			return wire.Opaque{Type: "PING", Data: data}, nil
		}}))
		_, err := r.Parse([]byte(`{"type":"PING"}`), wire.Limits{})
		t.ErrorContains(err, "no pong")
		e, err := r.Parse([]byte(`{"type":"PING","pong":1,"harnessName":"mine"}`), wire.Limits{})
		t.NoError(err)
		t.Equal(write(t.T, e, wire.Branches), `{"version":"1.0","type":"PING","pong":1,"harnessName":"mine"}`)
	})
	spec.Check(t, "seed-003#27: live by default, stored once its type opts in", func(t *spec.T) {
		r := wire.NewRegistry(nil)
		t.NoError(wire.RegisterType[cargo](r, false))
		t.NoError(r.Register(wire.Custom{Type: "LEDGER_LINE", Persist: true}))
		t.False(r.Table.Durable("CARGO_MANIFEST_READY", nil, false), "a custom type is stored by default")
		t.True(r.Table.Durable("LEDGER_LINE", nil, false), "one that opts in is stored")
		t.False(r.Table.Durable("NOBODYS", nil, true), "an unregistered type is never stored")
	})
	t.Run("an unregistered type passes through live", func(t *testing.T) {
		t.Parallel()
		c := &spec.T{T: t}
		e, err := registry.ParseAny([]byte(`{"b": 1, "type":"novel_thing","a":{"x": null},"n":null,"sessionId":"s"}`), wire.Limits{})
		c.NoError(err)
		c.NoError(registry.CheckPublished(e))
		c.Equal(write(t, e, wire.Branches), `{"version":"1.0","type":"NOVEL_THING","b":1,"a":{"x":null},"sessionId":"s"}`)
		_, err = registry.ParseAny([]byte(`{"type":"not a type"}`), wire.Limits{})
		c.ErrorContains(err, "capital letters")
	})
}

func TestStorageForm(t *testing.T) {
	t.Parallel()
	spec.Check(t, "seed-003#44: stored without base fields, shown with them again", func(t *spec.T) {
		for _, row := range branch.Rows() {
			sent := &wire.Event{Base: base(), Payload: filled(row.Type)}
			kept := &envelope.Envelope{ID: "00000000000000000000000000000009", Seq: 9, CreatedAt: time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)}
			t.NoError(sent.Store(kept, branch.Ext{}))
			t.Equal(kept.Type, "hpd."+row.Type)
			var members map[string]wire.Raw
			t.NoError(json.Unmarshal(kept.Data, &members))
			for _, name := range []string{"version", "type", "eventId", "sequenceNumber", "sessionId", "branchId", "channel", "kind", "direction", "canInterrupt", "exchangeTimestampNs", "metadata", "traceId", "spanId", "parentSpanId", "eventFlowId", "timestamp"} {
				_, has := members[name]
				t.False(has, "%s stores %s", row.Type, name)
			}
			t.Equal(string(kept.Ext), `{"flow":"turn-1","time":"2025-03-02T09:15:04.1180000+00:00"}`)

			name, stored, ok := wire.Stored(kept, wire.Scope{Session: "s-7", Branch: "main"})
			t.True(ok, "it is an event")
			want := base()
			want.EventID, want.SequenceNumber = kept.ID, 9
			history := wire.AppendLive(nil, wire.Branches, name, kept.Data, &stored)
			t.Equal(read(t.T, string(history)).Payload, sent.Payload, sameEvent)
			t.Equal(read(t.T, string(wire.AppendLive(nil, wire.Branches, name, kept.Data, new(stored.WithLive(&sent.Base))))).Base, want)
			t.False(bytes.Contains(history, []byte(want.TraceID)), "history shows a trace")
		}
	})
	t.Run("a stored event without a time of its own has the hub's", func(t *testing.T) {
		t.Parallel()
		kept := &envelope.Envelope{Type: "hpd.TEXT_DELTA", CreatedAt: time.Date(2025, 1, 1, 0, 0, 0, 5000, time.UTC)}
		_, stored, _ := wire.Stored(kept, wire.Scope{})
		(&spec.T{T: t}).Equal(stored.Timestamp, "2025-01-01T00:00:00.000005Z")
		_, _, ok := wire.Stored(&envelope.Envelope{Type: "ag2.text"}, wire.Scope{})
		(&spec.T{T: t}).False(ok, "another dialect's envelope is an event")
	})
}

func TestDefaults(t *testing.T) {
	t.Parallel()
	spec.Check(t, "hpd-events#23: argsJson is a string, {} without arguments", func(t *spec.T) {
		t.Contains(write(t.T, &wire.Event{Payload: wire.ToolCallArgs{CallID: "c"}}, wire.Branches), `"argsJson":"{}"`)
		t.Contains(write(t.T, &wire.Event{Payload: wire.ToolCallArgs{CallID: "c", ArgsJSON: `{"a":1}`}}, wire.Branches), `"argsJson":"{\"a\":1}"`)
		_, err := registry.Parse([]byte(`{"type":"TOOL_CALL_ARGS","callId":"c","argsJson":{"a":1}}`), wire.Limits{})
		t.ErrorContains(err, "/argsJson")
	})
	spec.Check(t, "hpd-events#24: arguments of a client tool are an object always", func(t *spec.T) {
		t.Contains(write(t.T, &wire.Event{Payload: wire.ClientToolInvokeRequest{RequestID: "r", ToolName: "t"}}, wire.Branches), `"arguments":{}`)
		t.Contains(write(t.T, read(t.T, `{"type":"CLIENT_TOOL_INVOKE_REQUEST","requestId":"r","toolName":"t"}`), wire.Branches), `"arguments":{}`)
		for _, other := range []string{`[1]`, `"x"`, `5`, `true`} {
			_, err := registry.Parse([]byte(`{"type":"CLIENT_TOOL_INVOKE_REQUEST","requestId":"r","toolName":"t","arguments":`+other+`}`), wire.Limits{})
			t.ErrorContains(err, "`arguments` is")
		}
	})
	c := &spec.T{T: t}
	for _, event := range []string{
		`{"type":"USER_TEXT_INPUT","text":"x","runConfig":[1]}`, `{"type":"USER_MESSAGES_INPUT","messages":[{"text":"x"}],"runConfig":"y"}`,
		`{"type":"PERMISSION_REQUEST","permissionId":"p","arguments":5}`, `{"type":"PLAN_UPDATED","planId":"p","plan":[]}`,
		`{"type":"WORKFLOW_AGENT_COMPLETED","workflowName":"w","agentId":"a","outputs":false}`,
	} {
		_, err := registry.Parse([]byte(event), wire.Limits{})
		c.ErrorContains(err, "it is an object")
	}
	c.True(read(t, `{"type":"CLIENT_TOOL_INVOKE_RESPONSE","requestId":"r"}`).Payload.(wire.ClientToolInvokeResponse).Success, "success by default")
	c.False(read(t, `{"type":"CLIENT_TOOL_INVOKE_RESPONSE","requestId":"r","success":false}`).Payload.(wire.ClientToolInvokeResponse).Success, "unless it says otherwise")
}
