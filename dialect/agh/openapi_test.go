package agh_test

import (
	"bytes"
	"fmt"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/parley-hub/parley/dialect/agh"
)

// contract is the document, as a client would check the runtime against it.
type contract struct {
	*rig
	paths   obj
	schemas *jsonschema.Compiler
	seen    map[string]bool // operations that succeeded
}

func newContract(r *rig) *contract {
	r.Helper()
	doc, err := jsonschema.UnmarshalJSON(r.serve("operator", "GET", "/agh/openapi.json", nil).Body)
	r.NoError(err)
	closeObjects(doc)
	c := &contract{r, doc.(obj)["paths"].(obj), jsonschema.NewCompiler(), map[string]bool{}}
	r.NoError(c.schemas.AddResource("agh.json", doc))
	return c
}

// closeObjects makes schemas refuse unlisted members, so that no response has
// members that the document does not mention.
func closeObjects(value any) {
	switch v := value.(type) {
	case obj:
		_, listed := v["properties"].(obj)
		if _, told := v["additionalProperties"]; listed && !told {
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

var ids = regexp.MustCompile(`\\\{[a-z_]+\\\}`)

// operation returns the document's entry for a request.
func (c *contract) operation(method, path string) (at string, op obj) {
	path, _, _ = strings.Cut(path, "?")
	if !strings.HasPrefix(path, "/agh") {
		path = ws + path
	}
	best := ""
	for pattern, item := range c.paths {
		found, ok := item.(obj)[strings.ToLower(method)].(obj)
		// Of two matches, the one with fewer names is used.
		if match := regexp.MustCompile("^" + ids.ReplaceAllString(regexp.QuoteMeta(pattern), "[^/]+") + "$"); ok && match.MatchString(path) && (best == "" || strings.Count(pattern, "{") < strings.Count(best, "{")) {
			best, op = pattern, found
		}
	}
	if op == nil {
		c.Fatalf("the document has no %s %s", method, path)
	}
	return "agh.json#/paths/" + strings.NewReplacer("~", "~0", "/", "~1", "{", "%7B", "}", "%7D").Replace(best) + "/" + strings.ToLower(method), op
}

// hold checks a response against the document.
func (c *contract) hold(as, method, path string, body any) *httptest.ResponseRecorder {
	c.Helper()
	at, op := c.operation(method, path)
	w := c.serve(as, method, path, body)
	what := fmt.Sprintf("%s %s as %s: %d %s", method, path, as, w.Code, w.Body)
	success, ok := op["responses"].(obj)[fmt.Sprint(w.Code)].(obj)
	if !ok {
		c.True(w.Code >= 400, "%s", what)
		c.valid("agh.json#/components/schemas/Failure", w.Body.Bytes(), what)
		return w
	}
	c.seen[op["operationId"].(string)] = true
	if success["content"] == nil {
		c.True(w.Body.Len() == 0, "%s", what)
		return w
	}
	c.Equal(w.Header().Get("Content-Type"), "application/json")
	c.valid(at+"/responses/"+fmt.Sprint(w.Code)+"/content/application~1json/schema", w.Body.Bytes(), what)
	return w
}

func (c *contract) valid(at string, data []byte, what string) {
	c.Helper()
	schema, err := c.schemas.Compile(at)
	c.NoError(err)
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		c.Fatalf("%s: %v", what, err)
	}
	if err := schema.Validate(value); err != nil {
		c.Fatalf("%s: %v", what, err)
	}
}

// Every route responds as documented, and with nothing else.
func TestRoutesKeepTheDocument(t *testing.T) {
	t.Parallel()
	runTrust(t, "every operation", func(r *rig, a *air, crane, tug *host, f *far) {
		c := newContract(r)
		const op = "operator"
		f.greet(obj{"capabilities": []string{"tow"}, "ext": obj{"far.shift": "night", "agh.capabilities_brief": []obj{{"id": "tow", "summary": "Tow."}}}})
		c.hold(op, "PUT", "/agh/agents/crane/capabilities", lifting)
		c.hold(op, "POST", "/channels", obj{"channel": "yard", "purpose": "loads", "agent_names": []string{"crane", "tug"}})
		c.hold(op, "POST", "/channels/dock/peers", obj{"agent": "third", "peer_id": "third.s1"})
		send := func(h *host, members obj) {
			body := obj{"session_id": h.session, "channel": "dock", "kind": "say", "surface": "thread", "thread_id": "thread_tide", "body": obj{"text": "hello", "intent": "notice"}}
			for k, v := range members {
				body[k] = v
			}
			c.hold(op, "POST", "/send", body)
		}
		send(crane, obj{
			"id": "m-1", "to": "tug.s02", "work_id": "work_1", "reply_to": "r", "trace_id": "t", "causation_id": "c", "expires_at": 4102444800,
			"ext": obj{"a.b": 1}, "workspace_id": "ws_harbor",
		})
		send(tug, obj{"kind": "trace", "to": "crane.s01", "work_id": "work_1", "body": obj{"state": "completed"}})
		send(crane, nil)
		send(crane, obj{"body": obj{}})
		direct := c.resolve(crane, "tug.s02")
		send(crane, obj{"surface": "direct", "thread_id": "", "direct_id": direct, "to": "tug.s02", "body": obj{"text": "psst"}})
		f.send(obj{"proof": obj{"any": "thing"}, "ext": obj{"x.y": nil}})
		for _, path := range []string{
			"/agh/openapi.json", "/agh/network/status", "/agh/agents/crane/capabilities", "/agh/agents/none/capabilities", "/peers", "/peers?channel=dock", "/peers/crane.s01", "/peers/far.s9", "/peers/none",
			"/channels", "/channels/dock", "/channels/yard", "/channels/none", "/channels/dock/threads", "/channels/dock/threads?limit=1", "/channels/dock/threads?limit=x",
			"/channels/dock/threads/thread_tide", "/channels/dock/threads/none", "/channels/dock/threads/thread_tide/messages?limit=2&kind=say", "/channels/dock/threads/thread_tide/messages?before=m-1&after=m-1",
			"/channels/dock/directs?peer_id=crane.s01", "/channels/dock/directs/" + direct, "/channels/dock/directs/" + direct + "/messages", "/work/work_1", "/work/none", "/trust",
			"/inbox?session_id=" + tug.session, "/inbox", "/channels/dock/threads/none/messages/live", "/channels/dock/directs/none/messages/live",
		} {
			for _, as := range []string{op, "reader", "agent:crane", "nobody"} {
				c.hold(as, "GET", path, nil)
			}
		}
		c.hold(op, "PUT", "/trust", obj{"policy": "verify", "pins": obj{}})
		c.hold(op, "POST", "/inbox/m-1/done?session_id="+tug.session, nil)
		c.hold(op, "POST", "/inbox/m-1/done?session_id="+tug.session, nil)
		c.hold(op, "DELETE", "/channels/dock/peers/third.s1", nil)
		c.hold(op, "DELETE", "/agh/agents/crane/capabilities", nil)
		c.hold(op, "DELETE", "/channels/yard", nil)
		for _, item := range c.paths {
			for _, one := range item.(obj) {
				name := one.(obj)["operationId"].(string)
				r.True(c.seen[name] || slices.Contains([]string{"threadLive", "directLive"}, name), "%s was never seen to succeed", name)
			}
		}
	})
	runs(t, "the document has the same bytes at every call", agh.Config{}, func(r *rig) {
		document := func() string { return r.serve("operator", "GET", "/agh/openapi.json", nil).Body.String() }
		first := document()
		for range 5 {
			r.Equal(document(), first)
		}
	})
	runs(t, "what is no route says so", agh.Config{}, func(r *rig) {
		for _, path := range []string{"/agh/", "/agh/nothing", "/agh/workspaces/w", "/agh/workspaces/w/network/settings", "/agh/settings/network"} {
			r.Contains(fmt.Sprint(r.ask(404, "GET", path, nil)), "/agh/openapi.json")
		}
		for path, allow := range map[string]string{"/peers": "GET", "/channels": "GET, POST", "/trust": "GET, PUT", "/channels/dock/peers/x": "DELETE", "/inbox/m/done": "POST"} {
			w := r.serve("operator", "PATCH", path, nil)
			r.Equal([]any{w.Code, w.Header().Get("Allow"), w.Header().Get("Content-Type")}, []any{405, allow, "application/json"})
		}
		r.askAs("nobody", 401, "GET", "/agh/nothing", nil)
	})
}

func (c *contract) resolve(h *host, peer string) string {
	c.Helper()
	w := c.hold("operator", "POST", "/channels/dock/directs/resolve", obj{"session_id": h.session, "peer_id": peer})
	id := regexp.MustCompile(`direct_[0-9a-f]{32}`).FindString(w.Body.String())
	c.True(id != "", "%s", w.Body)
	return id
}
