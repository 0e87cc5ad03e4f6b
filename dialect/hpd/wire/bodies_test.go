package wire_test

import (
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/parley-hub/parley/conformance/spec"
	"github.com/parley-hub/parley/dialect/hpd/wire"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/view/branch"
)

func TestInputs(t *testing.T) {
	t.Parallel()
	one := func(text string) []wire.ChatMessage {
		return []wire.ChatMessage{{Role: "user", Contents: []wire.Content{branch.Text(text)}}}
	}
	for body, want := range map[string][]wire.ChatMessage{
		`{"text":"hi"}`:                                                              one("hi"),
		`{"TEXT":"hi","RunConfig":{"a":1}}`:                                          one("hi"),
		`{"type":"USER_TEXT_INPUT","text":"hi"}`:                                     one("hi"),
		`{"type":"user_text_input","text":" a "}`:                                    one(" a "),
		`{"type":"USER_MESSAGES_INPUT","messages":[{"text":"hi"}]}`:                  one("hi"),
		`{"type":"USER_MESSAGES_INPUT","messages":[{"role":"user","content":"hi"}]}`: one("hi"),
		`{"type":"USER_MESSAGES_INPUT","threadId":"other","messages":[{"contents":[{"$type":"text","text":"hi"}]}]}`: one("hi"),
		`{"type":"USER_MESSAGES_INPUT","messages":[{"role":"system","messageId":"m","content":"a"},{"role":"user","text":"b"}]}`: {
			{Role: "system", MessageID: "m", Contents: []wire.Content{branch.Text("a")}}, one("b")[0],
		},
	} {
		in, err := registry.ParseInput([]byte(body), wire.Limits{})
		c := &spec.T{T: t}
		c.NoError(err)
		c.Equal(in.Messages, want, sameEvent)
	}
	for body, fragment := range map[string]string{
		`{"text":""}`: "blank", `{"text":"  "}`: "blank", `{"text":5}`: "`text`", `{}`: "neither", `{"runConfig":{}}`: "neither", `[]`: "not an array", `"x"`: "not a string", ``: "not valid",
		`{"type":"USER_TEXT_INPUT","text":" "}`: "blank", `{"type":"USER_TEXT_INPUT"}`: "lacks `text`", `{"type":"USER_MESSAGES_INPUT"}`: "empty", `{"type":"USER_MESSAGES_INPUT","messages":[]}`: "empty",
		`{"type":"USER_MESSAGES_INPUT","messages":[5]}`: "USER_MESSAGES_INPUT", `{"type":"NOVEL"}`: "not registered", `{"type":"PERMISSION_RESPONSE","permissionId":"p"}`: "not an input",
		`{"type":"INTERRUPTION_REQUEST"}`: "not an input", `{"type":null,"text":"x"}`: "null", `{"text":"x","runConfig":5}`: "`runConfig`", `{"text":"a","text":"b"}`: "duplicate",
	} {
		_, err := registry.ParseInput([]byte(body), wire.Limits{})
		c := &spec.T{T: t}
		c.ErrorContains(err, fragment)
		c.Equal(fault.CodeOf(err), fault.Invalid)
	}
	c := &spec.T{T: t}
	_, err := registry.ParseInput([]byte(`{"type":"USER_MESSAGES_INPUT","messages":[`+strings.Repeat(`{"text":"a"},`, 255)+`{"text":"b"}]}`), wire.Limits{})
	c.ErrorContains(err, "256 messages", "at most 255")
	c.Equal(fault.CodeOf(err), fault.TooLarge)
	in, err := registry.ParseInput([]byte(`{"text":"hi","runConfig":{"apiKey":"k", "modelId":"m","n":1.50}}`), wire.Limits{})
	c.NoError(err)
	c.Equal(string(in.RunConfig), `{"apiKey":"k", "modelId":"m","n":1.50}`)
	c.Equal(string(wire.WithoutSecrets(in.RunConfig)), `{"modelId":"m","n":1.50}`)
	c.Equal(string(wire.WithoutSecrets(wire.Raw(`{"ApiKey":"k","CustomHeaders":{}}`))), `{}`)
	c.Equal(wire.WithoutSecrets(wire.Raw(`nonsense`)), wire.Raw(nil))
	in.Complete(func() string { return "minted" })
	c.Equal(in.Messages[0].MessageID, "minted")
}

func TestInterrupts(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]wire.InterruptionRequest{
		``:                                {Reason: new("Interrupted by client."), Source: "User"},
		"\n":                              {Reason: new("Interrupted by client."), Source: "User"},
		`{}`:                              {Reason: new("Interrupted by client."), Source: "User"},
		`{"reason":"enough"}`:             {Reason: new("enough"), Source: "User"},
		`{"type":"INTERRUPTION_REQUEST"}`: {Reason: new("Interrupted by client."), Source: "User"},
		`{"type":"INTERRUPTION_REQUEST","source":1,"reason":"x"}`: {Reason: new("x"), Source: "System"},
	} {
		e, err := registry.ParseInterrupt([]byte(body), wire.Limits{})
		c := &spec.T{T: t}
		c.NoError(err)
		c.Equal(e.Payload, wire.Payload(want))
	}
	c := &spec.T{T: t}
	e, err := registry.ParseInterrupt([]byte(` {"eventFlowId":"f"} `), wire.Limits{})
	c.NoError(err)
	c.Equal(e.EventFlowID, "f")
	for _, body := range []string{`[]`, `5`, `{`, `{"type":"USER_TEXT_INPUT","text":"x"}`, `{"type":"NOVEL"}`, `{"reason":5}`} {
		_, err := registry.ParseInterrupt([]byte(body), wire.Limits{})
		c.Equal(fault.CodeOf(err), fault.Invalid)
	}
}

func TestResponsesAndFrames(t *testing.T) {
	t.Parallel()
	c := &spec.T{T: t}
	_, err := registry.ParseResponse([]byte(" "), wire.Limits{})
	c.ErrorContains(err, "A response event envelope is required.")
	for _, body := range []string{`{}`, `{"type":"USER_TEXT_INPUT","text":"x"}`, `{"type":"PERMISSION_RESPONSE"}`, `x`} {
		_, err := registry.ParseResponse([]byte(body), wire.Limits{})
		c.Equal(fault.CodeOf(err), fault.Invalid)
	}
	for body, want := range map[string]wire.Response{
		`{"type":"PERMISSION_RESPONSE","permissionId":"a","approved":true,"choice":"ask"}`: {RequestID: "a", Type: "PERMISSION_RESPONSE"},
		`{"type":"CONTINUATION_RESPONSE","continuationId":"b","approved":true}`:            {RequestID: "b", Type: "CONTINUATION_RESPONSE"},
		`{"type":"CLARIFICATION_RESPONSE","requestId":"c","answer":"x"}`:                   {RequestID: "c", Type: "CLARIFICATION_RESPONSE"},
		`{"type":"CLIENT_TOOL_INVOKE_RESPONSE","requestId":"d","content":[],"responderId":"me","responderGroup":"g","capabilities":["x"]}`: {
			RequestID: "d", Type: "CLIENT_TOOL_INVOKE_RESPONSE", ResponderID: "me", ResponderGroup: "g", Capabilities: []string{"x"},
		},
	} {
		e, err := registry.ParseResponse([]byte(body), wire.Limits{})
		c.NoError(err)
		got, ok := wire.ResponseOf(e)
		c.True(ok, "%s is a response", body)
		c.Equal(got, want)
		_, err = registry.ParseFrame([]byte(body), wire.Limits{})
		c.NoError(err)
	}
	for _, frame := range []string{`{"type":"USER_TEXT_INPUT","text":"x"}`, `{"type":"INTERRUPTION_REQUEST"}`} {
		_, err := registry.ParseFrame([]byte(frame), wire.Limits{})
		c.NoError(err)
	}
	for _, frame := range []string{`{"text":"x"}`, `{"type":"USER_TEXT_INPUT","text":""}`, `{"type":"USER_MESSAGES_INPUT","messages":[]}`, `{"type":"TEXT_DELTA","text":"x","messageId":"m"}`, `x`} {
		_, err := registry.ParseFrame([]byte(frame), wire.Limits{})
		c.Equal(fault.CodeOf(err), fault.Invalid)
	}
}

func TestJudge(t *testing.T) {
	t.Parallel()
	request := func(text string) *wire.Request {
		e := read(t, text)
		r, ok := wire.RequestOf(e)
		if !ok {
			t.Fatalf("%s is no request", text)
		}
		return &r
	}
	open := request(`{"type":"PERMISSION_REQUEST","permissionId":"p","sourceName":"s"}`)
	targeted := request(`{"type":"CLIENT_TOOL_INVOKE_REQUEST","requestId":"r","toolName":"t","responsePolicy":1,"target":{"responderId":"me","responderGroup":"g","requiredCapabilities":["x","y"]}}`)
	c := &spec.T{T: t}
	c.Equal(*open, wire.Request{RequestID: "p", Type: "PERMISSION_REQUEST", Expects: "PERMISSION_RESPONSE", SourceName: "s", Policy: "firstValidResponseWins", Visibility: "allObservers"})
	c.Equal(open.Judge(&wire.Response{RequestID: "p", Type: "PERMISSION_RESPONSE"}), wire.Accepted)
	c.Equal(open.Judge(&wire.Response{RequestID: "q", Type: "PERMISSION_RESPONSE"}), wire.NotFound)
	c.Equal(open.Judge(&wire.Response{RequestID: "p", Type: "CLARIFICATION_RESPONSE"}), wire.ResponseTypeMismatch)
	fits := wire.Response{RequestID: "r", Type: "CLIENT_TOOL_INVOKE_RESPONSE", ResponderID: "me", ResponderGroup: "g", Capabilities: []string{"y", "x", "z"}}
	c.Equal(targeted.Judge(&fits), wire.Accepted)
	for _, change := range []func(*wire.Response){
		func(r *wire.Response) { r.ResponderID = "you" }, func(r *wire.Response) { r.ResponderGroup = "" }, func(r *wire.Response) { r.Capabilities = []string{"x"} },
	} {
		other := fits
		change(&other)
		c.Equal(targeted.Judge(&other), wire.TargetMismatch)
	}
	targeted.Policy = wire.FirstValidResponseWins
	c.Equal(targeted.Judge(&wire.Response{RequestID: "r", Type: "CLIENT_TOOL_INVOKE_RESPONSE"}), wire.Accepted)
}

func TestPublished(t *testing.T) {
	t.Parallel()
	c := &spec.T{T: t}
	events, err := registry.ParsePublished([]byte(`[{"type":"TEXT_DELTA","text":"a","messageId":"m","runtimeRunId":"r"},{"type":"NOVEL","x":1}]`), wire.Limits{})
	c.NoError(err)
	c.Equal(len(events), 2)
	c.Equal(events[0].RunID, "r")
	c.Equal(write(t, events[0], wire.Branches), `{"version":"1.0","type":"TEXT_DELTA","text":"a","messageId":"m","channel":"Streaming"}`)
	events, err = registry.ParsePublished([]byte(` {"type":"TEXT_DELTA","text":"a","messageId":"m"}`), wire.Limits{})
	c.NoError(err)
	c.Equal(len(events), 1)
	for body, fragment := range map[string]string{
		`[]`: "empty", `[5]`: "event 0", `[{"type":"TEXT_DELTA","text":"a","messageId":"m"},{"type":"BRANCH_CREATED"}]`: "event 1: BRANCH_CREATED is written by the server",
		`{"type":"THREAD_RUN_COMPLETED","runtimeRunId":"r"}`: "server", `{"type":"MESSAGE_STARTED","messageId":"m"}`: "server", `{"type":"USER_TEXT_INPUT","text":"x"}`: "clients",
		`{"type":"PERMISSION_REQUEST","permissionId":"p"}`: "requests route", `[{"type":"TEXT_DELTA"`: "not valid", `[{"type":"TEXT_DELTA"}`: "event 0",
	} {
		_, err := registry.ParsePublished([]byte(body), wire.Limits{})
		c.ErrorContains(err, fragment)
		c.Equal(fault.CodeOf(err), fault.Invalid)
	}
	_, err = registry.ParsePublished([]byte(`[`+strings.Repeat(`{"type":"A"},`, 512)+`{"type":"A"}]`), wire.Limits{})
	c.ErrorContains(err, "more than 512")
	c.Equal(fault.CodeOf(err), fault.TooLarge)
	for _, seconds := range []string{"-1", "-0.5"} {
		_, _, err = registry.ParseAsked([]byte(`{"type":"CONTINUATION_REQUEST","continuationId":"k","timeoutSeconds":`+seconds+`}`), wire.Limits{})
		c.ErrorContains(err, "`timeoutSeconds` is "+seconds)
		c.Equal(fault.CodeOf(err), fault.Invalid)
	}
	asked, request, err := registry.ParseAsked([]byte(`{"type":"CONTINUATION_REQUEST","continuationId":"k","timeoutSeconds":9.5}`), wire.Limits{})
	c.NoError(err)
	c.Equal(request.RequestID, "k")
	c.Equal(*asked.TimeoutSeconds, 9.5)
	c.False(strings.Contains(write(t, asked, wire.Branches), "timeoutSeconds"), "clients are shown the timeout")
	_, _, err = registry.ParseAsked([]byte(`{"type":"TEXT_MESSAGE_END","messageId":"k"}`), wire.Limits{})
	c.ErrorContains(err, "not a request")
}

func TestSurfaces(t *testing.T) {
	t.Parallel()
	c := &spec.T{T: t}
	for code, want := range map[string]string{
		wire.BranchRunActive: "ThreadRunActive", wire.ProtectedBranch: "ProtectedThread", wire.ListBranchesError: "ListThreadsError", wire.GetActiveBranchRunError: "GetActiveThreadRunError",
		wire.BidirectionalResponseError: "RequestResponseError", wire.BidirectionalResponse: "RequestResponse", wire.HasChildren: "HasChildren", wire.BranchRuntimeNotActive: "ThreadRuntimeNotActive",
	} {
		c.Equal(wire.Threads.Code(code), want)
		c.Equal(wire.Branches.Code(code), code)
	}
	forked := &wire.Event{Base: wire.Base{Scope: wire.Scope{Session: "s", Branch: "b"}}, Payload: wire.BranchForked{SourceBranchID: "main", FromMessageID: "m"}}
	c.Equal(write(t, forked, wire.Threads), `{"version":"1.0","type":"THREAD_FORKED","sourceThreadId":"main","fromMessageId":"m","resolvedMessageIndex":0,"sessionId":"s","threadId":"b","kind":"Lifecycle"}`)
	created := &wire.Event{Payload: wire.BranchCreated{BranchMetadata: wire.Raw(`{"kind":"subagent","parentBranchId":"main","deep":{"branchId":1}}`)}}
	c.Contains(write(t, created, wire.Threads), `"threadMetadata":{"kind":"subagent","parentThreadId":"main","deep":{"branchId":1}}`)
	c.Equal(string(wire.Threads.Body([]byte(`[{"id":"x","originalBranchId":"m","childBranches":[],"metadata":{"parentBranchId":"p","x":{"branchId":1}}}]`))),
		`[{"id":"x","originalThreadId":"m","childThreads":[],"metadata":{"parentThreadId":"p","x":{"branchId":1}}}]`)
	c.Equal(string(wire.Canonical([]byte(`{"newThreadId":"x","fromMessageId":"m"}`))), `{"newBranchId":"x","fromMessageId":"m"}`)
	c.Equal(string(wire.Canonical([]byte(`{"newThreadId":`))), `{"newThreadId":`)
	c.Equal(string(wire.Canonical([]byte(`{"newThreadId":"x"} 1`))), `{"newThreadId":"x"} 1`)
	c.Equal(string(wire.Canonical([]byte(`{"branchId":"x","threadId":"y","name":"n"}`))), `{"branchId":"x","name":"n"}`)
	c.Equal(string(wire.Canonical([]byte(`{"branchId":"x","branchId":"y"}`))), `{"branchId":"x","branchId":"y"}`)
	c.Equal(wire.Threads.CloseGone(), "Session or thread not found")
}

func TestBodies(t *testing.T) {
	t.Parallel()
	c := &spec.T{T: t}
	at := time.Date(2025, 3, 2, 9, 20, 0, 0, time.UTC)
	body := func(v any) string {
		data, err := json.Marshal(v, json.Deterministic(true))
		c.NoError(err)
		return string(data)
	}
	spec.Check(t, "hpd-events#54: metadata is always an object", func(t *spec.T) {
		t.Equal(body(wire.Session{ID: "s-7", CreatedAt: at, LastActivity: at}), `{"id":"s-7","createdAt":"2025-03-02T09:20:00Z","lastActivity":"2025-03-02T09:20:00Z","metadata":{}}`)
	})
	places := branch.Places([]branch.Node{{ID: "main", Order: 1}, {ID: "tone-b", Order: 2, Fork: branch.ForkPoint{Source: "main", MessageID: "m-2", MessageIndex: 1}}})
	dto := wire.Branch{ID: "tone-b", SessionID: "s-7", Name: "Friendlier tone", CreatedAt: at, LastActivity: at, MessageCount: 4, Tags: []string{"draft"}}
	dto.SetPlace(places["tone-b"])
	c.Equal(body(dto), `{"id":"tone-b","sessionId":"s-7","name":"Friendlier tone","forkedFrom":"main","forkedAtMessageId":"m-2","forkedAtMessageIndex":1,"createdAt":"2025-03-02T09:20:00Z","lastActivity":"2025-03-02T09:20:00Z","messageCount":4,"tags":["draft"],"ancestors":{"0":"main"},"siblingIndex":1,"totalSiblings":2,"isOriginal":false,"originalBranchId":"main","previousSiblingId":"main","childBranches":[],"totalForks":0}`)
	c.Equal(body(wire.TreeUpdated(places["main"])), `{"siblingIndex":0,"totalSiblings":2,"isOriginal":true,"nextSiblingId":"tone-b","childBranches":["tone-b"]}`)
	c.Equal(body(wire.Run{RuntimeRunID: "r", AgentID: "a", SessionID: "s", BranchID: "b", Status: wire.RunFailed, StartedAt: at, CompletedAt: at, Error: &wire.RunError{Type: new("TimeoutException"), Message: new("model timed out")}}),
		`{"runtimeRunId":"r","agentId":"a","sessionId":"s","branchId":"b","status":"failed","startedAt":"2025-03-02T09:20:00Z","completedAt":"2025-03-02T09:20:00Z","error":{"type":"TimeoutException","message":"model timed out"},"backgroundTasks":[]}`)
	c.Equal(body(wire.StoredAgent{AgentSummary: wire.AgentSummary{ID: "x", Name: "n", CreatedAt: at, UpdatedAt: at}, Config: wire.Raw(`{"b":1.50,"a":null}`)}),
		`{"id":"x","name":"n","createdAt":"2025-03-02T09:20:00Z","updatedAt":"2025-03-02T09:20:00Z","config":{"b":1.50,"a":null}}`)
	c.Equal(body(wire.WorkInput{RuntimeRunID: "r", MessageTurnID: "t", Messages: []wire.ChatMessage{{MessageID: "m", Role: "user", Contents: []wire.Content{branch.Text("hi")}}}}),
		`{"runtimeRunId":"r","sessionId":"","branchId":"","messageTurnId":"t","messages":[{"messageId":"m","role":"user","contents":[{"$type":"text","text":"hi"}]}],"resumed":false}`)

	c.Equal(string(wire.NewProblem(wire.Branches, 400, wire.ForkMessageNotPresent, "Message 'm-99' is not part of branch 'main'.").JSON()),
		`{"type":"https://tools.ietf.org/html/rfc9110#section-15.5.1","title":"One or more validation errors occurred.","status":400,"errors":{"ForkMessageNotPresent":["Message 'm-99' is not part of branch 'main'."]}}`)
	c.Equal(string(wire.NewProblem(wire.Threads, 409, wire.BranchRunActive, "A run is active.").JSON()),
		`{"type":"https://tools.ietf.org/html/rfc9110#section-15.5.10","title":"A run is active.","status":409,"errors":{"ThreadRunActive":["A run is active."]}}`)
	c.Equal(string(wire.Refused(wire.RespondResult{Status: wire.NotFound, RequestID: "p", Message: new("Nobody waits for 'p'.")}).JSON()),
		`{"type":"https://tools.ietf.org/html/rfc9110#section-15.5.10","title":"Nobody waits for 'p'.","status":409,"result":{"status":"notFound","requestId":"p","message":"Nobody waits for 'p'.","accepted":false},"errors":{"NotFound":["Nobody waits for 'p'."]}}`)
	c.Contains(string(wire.NoRuntime(wire.Threads, "No run.").JSON()), `"result":null`, `"ThreadRuntimeNotActive"`)
	c.Contains(string(wire.NewProblem(wire.Branches, 418, "X", "\xff").JSON()), `"status":418`)
}

func TestNamesIdsAndMetadata(t *testing.T) {
	t.Parallel()
	spec.Check(t, "hpd-events#83: the display name falls back, and a derived one is cut", func(t *spec.T) {
		long := strings.Repeat("ä", 31)
		t.Equal(wire.DisplayName(new(long), new("d"), "u", "id"), long)
		t.Equal(wire.DisplayName(nil, new("d"), "u", "id"), "d")
		t.Equal(wire.DisplayName(new(" "), nil, "u", "id"), "u")
		t.Equal(wire.DisplayName(nil, nil, "", "id"), "id")
		t.Equal(wire.DisplayName(nil, nil, long, "id"), strings.Repeat("ä", 30)+"...")
		t.Equal(wire.DisplayName(nil, new(long[:60]), "", "id"), strings.Repeat("ä", 30))
	})
	c := &spec.T{T: t}
	for _, id := range []string{"main", "a", "subagent/scout/run-2", "A.b_c~d-9", strings.Repeat("x", 200), "...", ".a"} {
		c.NoError(wire.CheckID("branch", id))
	}
	for _, id := range []string{"", "a b", "a/../b", "./a", "a//b", "/a", "a/", "..", "é", "a%2Fb", "a?b", "a\n", strings.Repeat("x", 201)} {
		c.ErrorContains(wire.CheckID("branch", id), "branch id", "not valid")
	}
	raw := func(text string) map[string]wire.Raw {
		var m map[string]wire.Raw
		c.NoError(json.Unmarshal([]byte(text), &m))
		return m
	}
	c.Equal(wire.MergeMetadata(raw(`{"a":1,"b":2}`), raw(`{"b":null,"c":"x"}`)), raw(`{"a":1,"c":"x"}`))
	c.True(wire.MatchesMetadata(raw(`{"a":5,"b":"x"}`), raw(`{"a":"5","b":"x"}`)), "5 matches \"5\"")
	c.True(wire.MatchesMetadata(raw(`{"a":"true"}`), raw(`{"a":true}`)), "true matches \"true\"")
	c.True(wire.MatchesMetadata(nil, nil), "nothing asked matches")
	c.False(wire.MatchesMetadata(raw(`{"a":5}`), raw(`{"a":5,"b":1}`)), "a missing key matches")
	var config wire.RunConfig
	c.NoError(json.Unmarshal([]byte(`{"runTimeout":"PT2M30S"}`), &config))
	c.Equal(time.Duration(*config.RunTimeout), 150*time.Second)
	c.NoError(json.Unmarshal([]byte(`{"runTimeout":"00:02:30","clientToolInput":{"clientToolHarnesses":[{"name":"h","tools":[{"name":"t"}]}]}}`), &config))
	c.Equal(time.Duration(*config.RunTimeout), 150*time.Second)
	c.Equal(config.ClientToolInput.ClientToolHarnesses[0].Tools[0].Name, "t")
	c.ErrorContains(json.Unmarshal([]byte(`{"runTimeout":"PT"}`), &config), "PT2M")
}

func TestProblemsSpeakTheSurfacesWords(t *testing.T) {
	t.Parallel()
	c := &spec.T{T: t}
	for surface, want := range map[wire.Surface]string{
		wire.Branches: `{"type":"https://tools.ietf.org/html/rfc9110#section-15.5.5","title":"Branch 'b' was not found.","status":404,"errors":{"GetBranchError":["Branch 'b' was not found."]}}`,
		wire.Threads:  `{"type":"https://tools.ietf.org/html/rfc9110#section-15.5.5","title":"Thread 'b' was not found.","status":404,"errors":{"GetThreadError":["Thread 'b' was not found."]}}`,
	} {
		c.Equal(string(wire.NewProblem(surface, 404, wire.GetBranchError, "Branch 'b' was not found.").JSON()), want)
	}
}

func TestSecretsAreFoundWhereverTheyAre(t *testing.T) {
	t.Parallel()
	c := &spec.T{T: t}
	for in, want := range map[string]string{
		`{"a":1,"apiKey":"s"}`:                                  `{"a":1}`,
		`{"a":{"Client-Secret":"s","b":[{"password":"s"}]}}`:    `{"a":{"b":[{}]}}`,
		`{"chat":{"maxOutputTokens":5},"useCache":true}`:        `{"chat":{"maxOutputTokens":5},"useCache":true}`,
		`{"url":"https://u:s@host/","plain":"https://host/"}`:   `{"plain":"https://host/"}`,
		`{"providerOptionsJson":"{\"api_key\":\"s\",\"k\":1}"}`: `{"providerOptionsJson":"{\"k\":1}"}`,
		`{"providerOptionsJson":"not JSON, s"}`:                 `{}`,
	} {
		c.Equal(string(wire.WithoutSecrets(wire.Raw(in))), want)
	}
}
