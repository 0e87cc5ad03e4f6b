package api_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/parley-hub/parley/hub"
	"github.com/parley-hub/parley/server/access"
	"github.com/parley-hub/parley/server/api"
	"github.com/parley-hub/parley/server/stats"
	"github.com/parley-hub/parley/task"
)

// contract is the document, as a client would hold the hub to it.
type contract struct {
	t       *testing.T
	doc     map[string]any
	schemas *jsonschema.Compiler
	seen    map[string]bool // operations that were asked and answered
}

func newContract(t *testing.T, s *site) *contract {
	t.Helper()
	resp := s.do("", "GET", "/v1/openapi.json", "")
	defer resp.Body.Close()
	doc, err := jsonschema.UnmarshalJSON(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	closeObjects(doc)
	c := &contract{t: t, doc: doc.(map[string]any), schemas: jsonschema.NewCompiler(), seen: map[string]bool{}}
	c.schemas.AssertFormat()
	if err := c.schemas.AddResource("v1.json", doc); err != nil {
		t.Fatal(err)
	}
	return c
}

// closeObjects refuses what a schema does not list, so that nothing is answered
// that the document keeps silent about.
func closeObjects(value any) {
	switch v := value.(type) {
	case map[string]any:
		_, listed := v["properties"].(map[string]any)
		if _, told := v["additionalProperties"]; listed && !told && v["type"] == "object" {
			v["additionalProperties"] = false
		}
		for _, below := range v {
			closeObjects(below)
		}
	case []any:
		for _, below := range v {
			closeObjects(below)
		}
	}
}

// operation finds what the document says of a request.
func (c *contract) operation(method, path string) (name, at string, op map[string]any) {
	path, _, _ = strings.Cut(path, "?")
	parts := strings.Split(path, "/")
	best := -1
	for pattern, item := range c.doc["paths"].(map[string]any) {
		want := strings.Split(pattern, "/")
		if len(want) != len(parts) {
			continue
		}
		literal := 0
		for i := range want {
			if want[i] == parts[i] {
				literal++
			} else if !strings.HasPrefix(want[i], "{") {
				literal = -100
			}
		}
		found, ok := item.(map[string]any)[strings.ToLower(method)].(map[string]any)
		if literal > best && ok {
			best, op = literal, found
			name = found["operationId"].(string)
			at = "v1.json#/paths/" + strings.NewReplacer("~", "~0", "/", "~1", "{", "%7B", "}", "%7D").Replace(pattern) + "/" + strings.ToLower(method)
		}
	}
	if op == nil {
		c.t.Fatalf("the document has no %s %s", method, path)
	}
	return name, at, op
}

// hold checks a request and its answer.
func (c *contract) hold(s *site, as, method, path, body string) []byte {
	c.t.Helper()
	name, at, op := c.operation(method, path)
	if body != "" {
		c.valid(at+"/requestBody/content/application~1json/schema", []byte(body), name)
	}
	resp := s.do(as, method, path, body)
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	c.answered(name, at, op, resp, data)
	return data
}

// holdImport sends a bundle, which is no JSON value of its own.
func holdImport(c *contract, s *site, bundle string) {
	c.t.Helper()
	for _, body := range []string{bundle, "hello"} {
		name, at, op := c.operation("POST", "/v1/import")
		resp := s.do(operator, "POST", "/v1/import", body)
		c.answered(name, at, op, resp, readAll(c.t, resp))
	}
}

func (c *contract) answered(name, at string, op map[string]any, resp *http.Response, data []byte) {
	c.t.Helper()
	responses := op["responses"].(map[string]any)
	status := fmt.Sprint(resp.StatusCode)
	if _, ok := responses[status]; !ok || resp.StatusCode >= 400 {
		if resp.Header.Get("Content-Type") != "application/problem+json" || resp.StatusCode < 400 {
			c.t.Fatalf("%s: %s with %s is not in the document: %s", name, resp.Status, resp.Header.Get("Content-Type"), data)
		}
		c.valid("v1.json#/components/schemas/Problem", data, name)
		return
	}
	c.seen[name] = true
	content, _ := responses[status].(map[string]any)["content"].(map[string]any)
	if content == nil {
		if len(data) != 0 {
			c.t.Errorf("%s: the document says no content: %s", name, data)
		}
		return
	}
	media := resp.Header.Get("Content-Type")
	if _, ok := content[media]; !ok {
		c.t.Fatalf("%s: answered as %s", name, media)
	}
	if media == "application/json" {
		c.valid(at+"/responses/"+status+"/content/application~1json/schema", data, name)
	}
}

func (c *contract) valid(at string, data []byte, name string) {
	c.t.Helper()
	schema, err := c.schemas.Compile(at)
	if err != nil {
		c.t.Fatal(err)
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		c.t.Fatalf("%s: %v: %s", name, err, data)
	}
	if err := schema.Validate(value); err != nil {
		c.t.Errorf("%s: %v\n%s", name, err, data)
	}
}

// Every route answers with what the document says.
func TestRoutesKeepTheDocument(t *testing.T) {
	t.Parallel()
	keys := access.NewKeys()
	measured := stats.New([]stats.Series{{Name: "admitted", Counter: true}, {Name: "heap"}}, func() stats.Reading {
		return stats.Reading{Values: []float64{1, math.NaN()}}
	})
	measured.Record()
	s := newSite(t, func(cfg *api.Config) {
		cfg.Stats = measured
		cfg.Backup = func(_ context.Context, w io.Writer) error { _, err := io.WriteString(w, "tar"); return err }
		cfg.Keys, cfg.Sessions = keys, access.NewSessions(keys, access.SessionLimits{})
	}, chats(t))
	c := newContract(t, s)
	holdSessions(c, s, keys)
	alice := s.agent("alice")
	s.agent("bob")
	const op = operator
	var ch struct {
		ID string `json:"channel_id"`
	}
	opened := c.hold(s, op, "POST", "/v1/channels", `{"creator":"alice","type":"discussion","participants":["bob"],"labels":{"team":"red"},"ttl":"2h","knobs":{},"required_acks":null,"intent":"talk"}`)
	if err := json.Unmarshal(opened, &ch); err != nil {
		t.Fatal(err)
	}
	err := s.hub.ObserveTask(t.Context(), task.Task{ID: "scan-7", Owner: alice, Channel: ch.ID, State: task.Running, CreatedAt: time.Now()}, nil, hub.MirrorEnds)
	if err != nil {
		t.Fatal(err)
	}
	at := "/v1/channels/" + ch.ID
	var sent struct {
		ID string `json:"envelope_id"`
	}
	said := c.hold(s, op, "POST", at+"/events", `{"sender":"alice","text":"hello","idempotency_key":"k","ttl_seconds":60,"priority":"high"}`)
	if err := json.Unmarshal(said, &sent); err != nil {
		t.Fatal(err)
	}
	c.hold(s, op, "POST", at+"/events", `{"sender":"bob","text":"hi","causation_id":"`+sent.ID+`"}`)
	c.hold(s, op, "POST", at+"/events", `{"sender":"bob","event_type":"app.note","event_data":{"n":1.5},"audience":["alice"],"task_id":"scan-7"}`)
	var asked struct {
		ID string `json:"request_id"`
	}
	question := c.hold(s, op, "POST", at+"/requests", `{"asked_by":"alice","kind":"approval","title":"Go on?","body":"b","for":"bob","due_at":"2999-01-01T00:00:00Z","if_nobody_answers":"deny",`+
		`"action":{"name":"rm","arguments":{"path":"/x"}},"choices":[{"id":"approve","label":"Yes","consequence":"It goes on."},{"id":"deny"}],"trigger":{"envelope_id":"`+sent.ID+`","sequence":1}}`)
	if err := json.Unmarshal(question, &asked); err != nil {
		t.Fatal(err)
	}
	c.hold(s, op, "POST", at+"/requests", `{"asked_by":"alice","kind":"","title":"Go on?"}`)
	c.hold(s, op, "GET", "/v1/requests?state=open&sort=due&for=bob&asked_by=alice&limit=1", "")
	c.hold(s, op, "POST", "/v1/requests/"+asked.ID+"/answer", `{"choice":"approve","as":"bob","note":"fine"}`)
	c.hold(s, op, "POST", "/v1/requests/"+asked.ID+"/answer", `{"choice":"deny","as":"bob"}`)
	flow, _ := s.incident()
	for _, path := range []string{
		"/v1/channels/" + flow + "/state", "/v1/channels/" + flow + "/graph", "/v1/channels/" + flow + "/path", "/v1/channels/" + flow + "/path?before=x",
		"/v1/requests", "/v1/requests/" + asked.ID, "/v1/requests/none", "/v1/requests?state=nonsense",
		"/v1/channels?form=row", "/v1/channels?form=row&sort=activity&newest&state=active&state=pending", "/v1/channels?sort=due&overdue", "/v1/channels?waiting_for=people", "/v1/channels?waiting_for=bob&q=talk",
		"/v1/channels?form=nonsense", "/v1/channels?sort=nonsense", "/v1/channels?sort=due&state=closed", "/v1/channels?before=nonsense", "/v1/channels?after=" + ch.ID + "&before=" + ch.ID,
		at + "/events?around=2", at + "/events?around=" + sent.ID, at + "/events?around=99", at + "/events?match=HELLO&type=ag2.msg.text&sender=alice", at + "/events?before=9.9.9", at + "/events?follow&match=x",
		"/v1/summary", "/v1/stats", "/v1/stats?series=admitted&step=10s&since=2026-01-01T00:00:00Z", "/v1/stats?series=nonsense", "/v1/stats?step=nonsense",
		"/v1/agents?online&sort=seen&query=ALI", "/v1/agents?sort=nonsense", "/v1/agents/alice/turns", "/v1/agents/alice/cursors", "/v1/agents/ghost/turns", "/v1/tasks?newest&state=running&state=failed", "/v1/audit?newest&kind=channel_created&kind=agent_registered",
		"/v1/watch", "/v1/watch?topic=nonsense",
		"/v1/channels", "/v1/channels?newest&limit=1&label=team=red&state=active&type=discussion&agent=alice", at,
		at + "/events", at + "/events?as=alice&limit=2", at + "/events?after=nonsense", at + "/events?after=9.9.9",
		at + "/views/full_transcript", at + "/views/windowed_summary?recent_n=1", at + "/views/threaded?as=bob", at + "/views/nonsense", at + "/messages", at + "/messages?as=bob", at + "/state?at=2", at + "/state?at=x", at + "/graph", at + "/path",
		"/v1/events?limit=1", "/v1/events?label=team=red", "/v1/agents", "/v1/agents?capability=ocr", "/v1/agents/alice", "/v1/agents/ghost",
		"/v1/tasks", "/v1/tasks?state=running&owner=alice&channel=" + ch.ID, "/v1/tasks/scan-7", "/v1/tasks/none", "/v1/tasks?state=nonsense",
		"/v1/audit", "/v1/audit?kind=channel_created&agent=alice", "/v1/health", "/v1/openapi.json", "/v1/backup",
		"/v1/channels/none", "/v1/channels?state=nonsense", "/v1/channels?limit=0",
	} {
		c.hold(s, op, "GET", path, "")
		c.hold(s, "", "GET", path, "")
	}
	c.hold(s, op, "POST", "/v1/tasks/scan-7/cancel", `{"by":"bob","reason":"enough"}`)
	c.hold(s, op, "POST", "/v1/tasks/none/cancel", "")
	c.hold(s, op, "POST", at+"/live", `{"sender":"alice","event_data":{"at":0,"text":"he"},"causation_id":"x"}`)
	c.hold(s, op, "POST", at+"/live", `{"sender":"alice","event_type":"ag2.channel.closed","event_data":{}}`)
	var bundle []byte
	for _, form := range []string{"", "jsonl", "messages", "markdown", "pdf", "bundle"} {
		bundle = c.hold(s, op, "GET", at+"/export?form="+form, "")
	}
	holdImport(c, s, string(bundle))
	c.hold(s, op, "POST", "/v1/channels/close", `{"filter":{"type":"discussion","state":["active"],"label":["team=red"],"q":"talk"},"reason":"r","dry_run":true}`)
	c.hold(s, op, "POST", "/v1/channels/close", `{"filter":{},"expect":99}`)
	c.hold(s, op, "POST", at+"/close", `{"reason":"done"}`)
	c.hold(s, op, "GET", at, "")
	c.hold(s, op, "DELETE", at, "")
	c.hold(s, op, "POST", "/v1/agents", `{"name":"pia","kind":"human","summary":"reviews","capabilities":["review"]}`)
	c.hold(s, op, "POST", "/v1/agents", `{"name":"pia"}`)
	c.hold(s, op, "PUT", "/v1/agents/bob/rule", `{"access":{"channel_types":{"accept":["*"]}},"limits":{"rate":{"per_minute":60},"inbox":{"max_pending":9}}}`)
	c.hold(s, op, "DELETE", "/v1/agents/bob/rule", "")
	c.hold(s, op, "PUT", "/v1/agents/bob/budget", `{"limits":{"tokens":9000,"nanoseconds":60000000000},"prices":{"input_nano_dollars":7}}`)
	var granted struct {
		ID string `json:"grant_id"`
	}
	if err := json.Unmarshal(c.hold(s, op, "POST", "/v1/agents/bob/grants", `{"turn":true,"input":3,"output":4}`), &granted); err != nil {
		t.Fatal(err)
	}
	c.hold(s, op, "GET", "/v1/agents/bob/budget", "")
	c.hold(s, op, "POST", "/v1/agents/bob/grants/"+granted.ID+"/settle", `{"input":3,"output":1}`)
	c.hold(s, op, "DELETE", "/v1/agents/bob/budget", "")
	c.hold(s, op, "DELETE", "/v1/agents/bob", "")
	holdWatch(c, s)
	holdChats(c, s)
	for _, item := range c.doc["paths"].(map[string]any) {
		for _, op := range item.(map[string]any) {
			name := op.(map[string]any)["operationId"].(string)
			if served := !strings.HasSuffix(name, "Key") && !strings.HasSuffix(name, "Keys"); served && !c.seen[name] {
				t.Errorf("%s was never seen to succeed", name)
			}
		}
	}
}

// holdWatch watches, and changes what is watched.
func holdWatch(c *contract, s *site) {
	c.t.Helper()
	f := s.follow(operator, "/v1/watch?topic=summary")
	defer f.body.Close()
	var hello struct{ Watch string }
	if ev := f.next(); ev.name != "hello" {
		c.t.Fatalf("a watch begins with %s", ev.name)
	} else if err := json.Unmarshal([]byte(ev.data), &hello); err != nil {
		c.t.Fatal(err)
	}
	c.seen["watch"] = true
	c.hold(s, operator, "PUT", "/v1/watch/"+hello.Watch, `{"topics":["stats"]}`)
	c.hold(s, operator, "PUT", "/v1/watch/none", `{"topics":["stats"]}`)
}

// holdSessions signs in and out.
func holdSessions(c *contract, s *site, keys *access.Keys) {
	c.t.Helper()
	token, key, err := keys.Add(c.t.Context(), access.Operator, "", nil)
	if err != nil {
		c.t.Fatal(err)
	}
	c.hold(s, "", "GET", "/v1/session", "")
	c.hold(s, operator, "GET", "/v1/session", "")
	var made struct{ ID string }
	if err := json.Unmarshal(c.hold(s, "", "POST", "/v1/session", `{"token":"`+token+`"}`), &made); err != nil {
		c.t.Fatal(err)
	}
	c.hold(s, "", "POST", "/v1/session", `{"code":"wrong"}`)
	c.hold(s, operator+" "+key.ID, "POST", "/v1/session/codes", "")
	c.hold(s, operator, "GET", "/v1/sessions", "")
	c.hold(s, operator, "DELETE", "/v1/sessions/"+made.ID, "")
	c.hold(s, operator, "DELETE", "/v1/sessions/none", "")
	c.hold(s, operator, "DELETE", "/v1/session", "")
}

// What streams carry has the form that pages have.
func TestStreamsKeepTheDocument(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c := newContract(t, s)
	s.agent("alice")
	s.agent("bob")
	ch := s.open("conversation", "alice", "bob")
	s.ask(operator, "POST", "/v1/channels/"+ch+"/requests", `{"asked_by":"alice","kind":"approval","title":"Go on?"}`)
	for path, schema := range map[string]string{
		"/v1/channels/" + ch + "/events": "Event", "/v1/events?label=team=red": "Event", "/v1/audit": "AuditRecord", "/v1/requests": "Request",
	} {
		f := s.follow(operator, path)
		first := f.next()
		c.valid("v1.json#/components/schemas/"+schema, []byte(first.data), path)
		_ = f.body.Close()
	}
}

// The document has the same bytes whenever it is asked for, and leaves nothing to
// guess: arrays say what they hold, objects whether they are free, and every
// operation how it refuses.
func TestTheDocumentIsWhole(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	read := func() []byte {
		resp := s.do(operator, "GET", "/v1/openapi.json", "")
		defer resp.Body.Close()
		data, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	first := read()
	for range 5 {
		if !bytes.Equal(read(), first) {
			t.Fatal("the document differs from one call to the next")
		}
	}
	var doc map[string]any
	if err := json.Unmarshal(first, &doc); err != nil {
		t.Fatal(err)
	}
	holdWhole(t, "", doc)
	for path, item := range doc["paths"].(map[string]any) {
		for method, op := range item.(map[string]any) {
			responses := op.(map[string]any)["responses"].(map[string]any)
			if responses["400"] == nil || responses["default"] == nil || strings.Contains(path, "{") && responses["404"] == nil {
				t.Errorf("%s %s does not say how it refuses: %v", method, path, responses)
			}
		}
	}
}

func holdWhole(t *testing.T, at string, value any) {
	t.Helper()
	switch v := value.(type) {
	case []any:
		for _, item := range v {
			holdWhole(t, at, item)
		}
	case map[string]any:
		is := func(kind string) bool {
			list, _ := v["type"].([]any)
			return v["type"] == kind || slices.Contains(list, any(kind))
		}
		if is("array") && v["items"] == nil {
			t.Errorf("%s is an array of anything; say so with items", at)
		}
		if is("object") && v["properties"] == nil && v["additionalProperties"] == nil {
			t.Errorf("%s is an object of anything; say so with additionalProperties", at)
		}
		for key, item := range v {
			holdWhole(t, at+"/"+key, item)
		}
	}
}
