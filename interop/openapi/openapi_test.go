// Package openapi holds a real hub to the document it serves, with a validator
// that knows nothing of Parley: github.com/pb33f/libopenapi-validator. It is a
// module of its own, so that its dependencies never reach users.
package openapi

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/pb33f/libopenapi"
	validator "github.com/pb33f/libopenapi-validator"
)

// hub is a process of parley serve.
type hub struct {
	t         *testing.T
	url       string
	validator validator.Validator
}

func start(t *testing.T) *hub {
	t.Helper()
	binary := os.Getenv("PARLEY_BIN")
	if binary == "" {
		t.Fatal("PARLEY_BIN is not set; run make test")
	}
	h := &hub{t: t}
	dir := t.TempDir()
	var said struct {
		URL string `json:"url"`
	}
	line := h.run(dir, binary, "serve", "-o", "json", "--data", "data", "--listen", "127.0.0.1:0")
	if err := json.Unmarshal(line, &said); err != nil {
		t.Fatalf("%v: %s", err, line)
	}
	h.url = said.URL
	for _, name := range []string{"alice", "parrot"} {
		if err := os.WriteFile(dir+"/quiet.yaml", []byte("[]\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		h.run(dir, binary, "agent", "script", name, "quiet.yaml", "--hub", h.url)
	}
	return h
}

// run starts a process for the time of the test and returns its first line.
func (h *hub) run(dir string, args ...string) []byte {
	h.t.Helper()
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Dir = dir
	out, err := cmd.StdoutPipe()
	if err != nil {
		h.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		_ = cmd.Wait()
	})
	late := time.AfterFunc(30*time.Second, func() { _ = cmd.Process.Kill() })
	defer late.Stop()
	line, err := bufio.NewReader(out).ReadBytes('\n')
	if err != nil {
		h.t.Fatalf("%v said nothing: %v", args, err)
	}
	return line
}

// ask makes a request and holds it and its answer to the document.
func (h *hub) ask(method, path, body string, wanted int) map[string]any {
	h.t.Helper()
	request, err := http.NewRequestWithContext(h.t.Context(), method, h.url+path, strings.NewReader(body))
	if err != nil {
		h.t.Fatal(err)
	}
	if body != "" {
		request.Header.Set("Content-Type", "application/json")
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		h.t.Fatal(err)
	}
	defer answer.Body.Close()
	raw, err := io.ReadAll(answer.Body)
	if err != nil {
		h.t.Fatal(err)
	}
	if answer.StatusCode != wanted {
		h.t.Fatalf("%s %s: %s: %s", method, path, answer.Status, raw)
	}
	request.Body = io.NopCloser(strings.NewReader(body))
	answer.Body = io.NopCloser(bytes.NewReader(raw))
	ok, problems := h.validator.ValidateHttpRequestResponse(request, answer)
	if !ok {
		for _, p := range problems {
			if wanted >= 400 && p.ValidationType == "request" {
				continue // refused for that very reason
			}
			h.t.Errorf("%s %s: %s: %s\n%s", method, path, p.Message, p.Reason, raw)
			for _, detail := range p.SchemaValidationErrors {
				h.t.Errorf("  at %s: %s", detail.Location, detail.Reason)
			}
		}
	}
	if len(raw) == 0 || !strings.Contains(answer.Header.Get("Content-Type"), "json") {
		return nil
	}
	var decoded map[string]any
	if err := json.Unmarshal(raw, &decoded); err != nil {
		h.t.Fatalf("%v: %s", err, raw)
	}
	return decoded
}

func (h *hub) document() []byte {
	h.t.Helper()
	answer, err := http.Get(h.url + "/v1/openapi.json")
	if err != nil {
		h.t.Fatal(err)
	}
	defer answer.Body.Close()
	raw, err := io.ReadAll(answer.Body)
	if err != nil {
		h.t.Fatal(err)
	}
	return raw
}

func TestDocumentAndHandlersAgree(t *testing.T) {
	h := start(t)
	raw := h.document()
	doc, err := libopenapi.NewDocument(raw)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := doc.BuildV3Model(); err != nil {
		t.Fatalf("the document has no model: %v", err)
	}
	if h.validator, _ = validator.NewValidator(doc); h.validator == nil {
		t.Fatal("no validator can be made of the document")
	}
	if ok, problems := h.validator.ValidateDocument(); !ok {
		for _, p := range problems {
			t.Errorf("document: %s: %s", p.Message, p.Reason)
			for _, detail := range p.SchemaValidationErrors {
				t.Errorf("  at %s: %s", detail.Location, detail.Reason)
			}
		}
	}

	channel := fmt.Sprint(h.ask("POST", "/v1/channels", `{"creator":"alice","type":"conversation","participants":["parrot"],"labels":{"team":"red"}}`, 201)["channel_id"])
	at := "/v1/channels/" + channel
	h.ask("POST", at+"/events", `{"sender":"alice","text":"hello","idempotency_key":"k"}`, 201)
	h.ask("POST", at+"/events", `{"sender":"parrot","event_type":"app.note","event_data":{"n":9007199254740993}}`, 201)
	h.ask("POST", at+"/events", `{"sender":"ghost","text":"hello"}`, 404)
	for path, wanted := range map[string]int{
		"/v1/channels": 200, "/v1/channels?limit=1&newest=true&label=team%3Dred": 200, at: 200, "/v1/channels/none": 404,
		at + "/events": 200, at + "/events?after=9.9.9": 410, "/v1/events?limit=2": 200,
		"/v1/agents": 200, "/v1/agents/alice": 200, "/v1/agents/ghost": 404, "/v1/tasks": 200, "/v1/tasks/none": 404,
		"/v1/audit?limit=3": 200, "/v1/health": 200, "/v1/openapi.json": 200, "/v1/keys": 200,
	} {
		h.ask("GET", path, "", wanted)
	}
	// Views are left to our own test: this validator cannot follow a schema that
	// refers to itself.
	h.ask("POST", at+"/close", `{"reason":"done"}`, 200)
	h.ask("POST", at+"/events", `{"sender":"alice","text":"too late"}`, 409)
	h.ask("DELETE", at, "", 204)
	h.ask("DELETE", "/v1/agents/parrot", "", 204)
	h.ask("POST", "/v1/keys", `{"role":"operator"}`, 201) // from here on a token is needed
	h.ask("GET", "/v1/keys", "", 401)
}
