package hpd_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/gobwas/ws"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/parley-hub/parley/conformance/spec"
	"github.com/parley-hub/parley/dialect/hpd"
)

// contract is the document, as a client would check the server against it.
type contract struct {
	t       testing.TB
	rig     *rig
	doc     object
	schemas *jsonschema.Compiler
	paths   []pathOf
	done    map[string]bool // operations that succeeded
}

// pathOf is a path of the document, and its pattern.
type pathOf struct {
	path    string
	matches *regexp.Regexp
}

func newContract(t testing.TB, r *rig) *contract {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(r.do("GET", "/openapi.json", nil).raw))
	if err != nil {
		t.Fatal(err)
	}
	closeObjects(doc)
	c := &contract{t: t, rig: r, doc: doc.(object), schemas: jsonschema.NewCompiler(), done: map[string]bool{}}
	c.schemas.AssertFormat()
	if err := c.schemas.AddResource("hpd.json", doc); err != nil {
		t.Fatal(err)
	}
	id := regexp.MustCompile(`\\\{[A-Za-z]+\\\}`)
	for path := range c.doc["paths"].(object) {
		c.paths = append(c.paths, pathOf{path, regexp.MustCompile("^" + id.ReplaceAllString(regexp.QuoteMeta(path), "[^/]+") + "$")})
	}
	return c
}

// closeObjects makes schemas refuse unlisted members, so that no response has
// members that the document does not mention.
func closeObjects(value any) {
	switch v := value.(type) {
	case object:
		if _, has := v["properties"]; has && v["additionalProperties"] == nil && v["description"] == nil {
			v["additionalProperties"] = false
		}
		for _, inner := range v {
			closeObjects(inner)
		}
	case []any:
		for _, inner := range v {
			closeObjects(inner)
		}
	}
}

// operation returns the most literal path of the document that matches a path.
func (c *contract) operation(method, path string) string {
	c.t.Helper()
	path, _, _ = strings.Cut(path, "?")
	best := ""
	for _, p := range c.paths {
		if p.matches.MatchString(path) && (best == "" || strings.Count(p.path, "{") < strings.Count(best, "{")) {
			best = p.path
		}
	}
	if item, ok := c.doc["paths"].(object)[best].(object); !ok || item[strings.ToLower(method)] == nil {
		c.t.Fatalf("the document has no %s %s", method, path)
	}
	return best
}

// check checks a response against the document's entry for its status.
func (c *contract) check(method, path string, a answer) answer {
	c.t.Helper()
	at := c.operation(method, path)
	name := method + " " + at
	responses := c.doc["paths"].(object)[at].(object)[strings.ToLower(method)].(object)["responses"].(object)
	key := fmt.Sprint(a.status)
	response, ok := responses[key].(object)
	if !ok {
		if a.status < 400 {
			c.t.Errorf("%s: %d is not in the document", name, a.status)
			return a
		}
		key, response = "default", responses["default"].(object)
	} else {
		c.done[name] = true
	}
	content, _ := response["content"].(object)
	kind, _, _ := strings.Cut(a.header.Get("Content-Type"), ";")
	if content == nil {
		if len(a.raw) > 0 {
			c.t.Errorf("%s: %d has a body: %s", name, a.status, a.raw)
		}
		return a
	}
	if content["*/*"] == nil && content[kind] == nil {
		c.t.Errorf("%s: %d has the content type %q", name, a.status, kind)
	}
	if !strings.HasSuffix(kind, "json") || content[kind] == nil {
		return a
	}
	escape := strings.NewReplacer("~", "~0", "/", "~1", "{", "%7B", "}", "%7D")
	schema, err := c.schemas.Compile("hpd.json#/paths/" + escape.Replace(at) + "/" + strings.ToLower(method) + "/responses/" + key + "/content/" + escape.Replace(kind) + "/schema")
	if err != nil {
		c.t.Fatal(err)
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(a.raw))
	if err != nil {
		c.t.Fatalf("%s: %v: %s", name, err, a.raw)
	}
	if err := schema.Validate(value); err != nil {
		c.t.Errorf("%s: %v\n%s", name, err, a.raw)
	}
	return a
}

func (c *contract) do(method, path string, body any) answer {
	c.t.Helper()
	return c.check(method, path, c.rig.do(method, path, body))
}

// stream checks the beginning of a stream.
func (c *contract) stream(path string) *reader {
	c.t.Helper()
	w := c.rig.watch(path, nil)
	c.check("GET", path, answer{status: w.res.StatusCode, header: w.res.Header, raw: []byte(": …")})
	return w
}

func (c *contract) upload(path string) string {
	c.t.Helper()
	form := "--x\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.txt\"\r\nContent-Type: text/plain\r\n\r\nhello\r\n--x--\r\n"
	a := c.rig.send("POST", path, form, map[string]string{"Content-Type": "multipart/form-data; boundary=x"})
	return c.check("POST", path, a).object()["contentId"].(string)
}

// Every route responds as documented, under both names.
func TestRoutesKeepTheDocument(t *testing.T) {
	t.Parallel()
	r := newRig(t, hpd.Config{})
	c := newContract(t, r)
	c.do("GET", "/openapi.json", nil)
	agent := c.do("POST", "/agents", object{"name": "n", "config": object{"a": nil}, "metadata": object{"x": 1}}).object()["id"].(string)
	c.do("GET", "/agents", nil)
	c.do("GET", "/agents/"+agent, nil)
	c.do("PUT", "/agents/"+agent, object{"config": object{}})
	c.do("DELETE", "/agents/"+agent, nil)
	work := &remote{r, "far", c.stream("/agents/far/work")}
	for _, segment := range []string{"branches", "threads"} {
		keepsSurface(c, work, segment)
	}
	for _, row := range [][2]string{{"GET", "/sessions/nope"}, {"POST", "/agents"}, {"GET", "/agents/far/sessions/nope/branches/main/ws"}, {"POST", "/agents/far/sessions/nope/threads/main/inputs"}} {
		c.do(row[0], row[1], nil)
	}
	for path, item := range c.doc["paths"].(object) {
		for method := range item.(object) {
			if name := strings.ToUpper(method) + " " + path; !c.done[name] {
				t.Errorf("%s was not tried", name)
			}
		}
	}
}

// keepsSurface calls all routes of sessions and of one surface.
func keepsSurface(c *contract, p *remote, segment string) {
	c.t.Helper()
	s := c.do("POST", "/sessions", object{"metadata": object{"k": []int{1}}}).object()["id"].(string)
	of, one := "/sessions/"+s, "/sessions/"+s+"/"+segment+"/main"
	at := "/agents/far" + one
	c.do("GET", "/sessions?limit=5", nil)
	c.do("POST", "/sessions/search", object{})
	c.do("GET", of, nil)
	c.do("PATCH", of, object{"metadata": object{"n": 1}})
	c.do("GET", of+"/"+segment, nil)
	c.do("POST", "/agents/far/sessions/"+s+"/"+segment, object{"name": "side", "description": "d", "tags": []string{"t"}, "metadata": object{"kind": "subagent", "parentSessionId": s, "parentBranchId": "main"}})
	c.do("GET", one, nil)
	c.do("PATCH", one, object{"description": "d"})
	live := c.stream(at + "/events/live")
	conn, _, _, err := ws.Dial(c.t.Context(), strings.Replace(c.rig.http.URL, "http", "ws", 1)+"/hpd"+at+"/ws")
	if err == nil {
		_ = conn.Close()
		c.done["GET "+c.operation("GET", at+"/ws")] = true
	}

	c.do("GET", at+"/runs/active", nil)
	c.do("POST", at+"/inputs", object{"text": "hi"})
	w := p.work.named("input")
	run := w["runtimeRunId"].(string)
	c.do("GET", at+"/runs/active", nil)
	c.do("POST", at+"/events?runtimeRunId="+run, []object{delta("x"), stored[15], stored[16], stored[21], stored[22]})
	for word, ask := range map[string]object{
		"responses":              {"type": "PERMISSION_REQUEST", "permissionId": "q1", "sourceName": "s", "functionName": "f", "callId": "c"},
		"permissions/respond":    {"type": "PERMISSION_REQUEST", "permissionId": "q2", "sourceName": "s", "functionName": "f", "callId": "c"},
		"continuation/respond":   {"type": "CONTINUATION_REQUEST", "continuationId": "q3", "sourceName": "s", "currentIteration": 1, "maxIterations": 1},
		"clarifications/respond": {"type": "CLARIFICATION_REQUEST", "requestId": "q4", "sourceName": "s", "question": "?"},
		"client-tools/respond":   {"type": "CLIENT_TOOL_INVOKE_REQUEST", "requestId": "q5", "toolName": "t", "callId": "c"},
	} {
		id := c.do("POST", at+"/requests?runtimeRunId="+run, ask).object()["requestId"]
		c.do("GET", at+"/requests", nil)
		reply := object{"permissionId": id, "continuationId": id, "requestId": id, "sourceName": "s", "approved": true, "question": "?", "answer": "a", "content": []object{}}
		reply["type"] = strings.Replace(ask["type"].(string), "REQUEST", "RESPONSE", 1)
		c.do("POST", at+"/"+word, reply)
		c.do("POST", at+"/"+word, reply) // 409, with a result
	}
	c.do("POST", at+"/interrupt", nil)
	c.do("POST", at+"/runs/"+run+"/complete", object{"status": "cancelled"})
	ended := "BRANCH_RUN_COMPLETED"
	if segment == "threads" {
		ended = "THREAD_RUN_COMPLETED"
	}
	live.until(ended)
	for _, path := range []string{"/stream", "/events/stream"} {
		res, err := http.Post(c.rig.http.URL+"/hpd"+at+path, "application/json", strings.NewReader(`{"text":"again"}`))
		if err != nil {
			c.t.Fatal(err)
		}
		p.complete(p.work.named("input"), object{"status": "failed", "error": object{"code": "E", "message": "e"}})
		raw, err := io.ReadAll(res.Body)
		if err != nil {
			c.t.Fatal(err)
		}
		_ = res.Body.Close()
		c.check("POST", at+path, answer{res.StatusCode, res.Header, raw})
	}
	c.do("GET", at+"/runs", nil)
	c.do("GET", at+"/runs/"+run, nil)
	events := c.do("GET", one+"/events", nil).list()
	first := only(events, "MESSAGE_STARTED")[0]["messageId"]
	fork := c.do("POST", at+"/fork", object{"fromMessageId": first}).object()["id"].(string)
	c.do("GET", one+"/siblings", nil)
	c.do("GET", of+"/thread-graph", nil)
	for _, base := range []string{one + "/content", of + "/content"} {
		id := c.upload(base)
		c.do("GET", base, nil)
		c.do("GET", base+"/"+id, nil)
		c.do("DELETE", base+"/"+id, nil)
	}
	c.do("DELETE", of+"/"+segment+"/"+fork, nil)
	c.do("DELETE", of, nil)
	c.do("GET", of, nil) // 404
}

// The documented requests are those that the server accepts.
func TestDocumentOfRequests(t *testing.T) {
	t.Parallel()
	c := &spec.T{T: t}
	doc := newRig(t, hpd.Config{}).do("GET", "/openapi.json", nil).object()
	c.Equal(doc["openapi"], any("3.1.0"))
	paths, schemas := doc["paths"].(object), doc["components"].(object)["schemas"].(object)
	fork := schemas["ForkBranchOfThreads"].(object)
	c.Equal(fork["required"], any([]any{"fromMessageId"}))
	c.True(fork["properties"].(object)["newThreadId"] != nil, "the thread surface has its own names")
	c.True(schemas["ForkBranch"].(object)["properties"].(object)["newBranchId"] != nil, "and the branch surface its own")
	upload := paths["/sessions/{sessionId}/content"].(object)["post"].(object)["requestBody"].(object)
	c.True(upload["content"].(object)["multipart/form-data"] != nil, "an upload is a form")
	for path := range paths {
		if strings.Contains(path, "/branches") {
			other := strings.NewReplacer("/branches", "/threads", "{branchId}", "{threadId}").Replace(path)
			c.True(paths[other] != nil, "%s is there too", other)
		}
	}
}
