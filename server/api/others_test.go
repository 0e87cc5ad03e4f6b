package api_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/parley-hub/parley/hub"
	"github.com/parley-hub/parley/task"
)

// hidden is in everything that eve must not see.
const hidden = "XYZZY"

// secrets are what eve looks for: what is said between alice and bob, and what alice
// whispers to bob in a channel of all three.
type secrets struct {
	site                                      *site
	alice, bob                                string
	theirs, flow, ours, request, task, memory string
}

func keepSecrets(t *testing.T) *secrets {
	t.Helper()
	s := newSite(t)
	k := &secrets{site: s, alice: s.agent("alice"), bob: s.agent("bob")}
	s.agent("eve")
	s.human("hana")
	must := func(path, body string) map[string]any {
		t.Helper()
		status, answer := s.ask(operator, "POST", path, body)
		if status/100 != 2 {
			t.Fatalf("%s: %d %v", path, status, answer)
		}
		return answer
	}
	open := func(body string) string { return must("/v1/channels", body)["channel_id"].(string) }
	k.theirs = open(`{"creator":"alice","type":"discussion","participants":["bob"],"labels":{"title":"` + hidden + ` title"}}`)
	must("/v1/channels/"+k.theirs+"/events", `{"sender":"alice","text":"`+hidden+` text"}`)
	graph := fmt.Sprintf(`{"initial_speaker":%q,"transitions":[{"when":{"name":"context_equals","args":{"key":"area","value":"%s"}},"then":{"name":"agent","args":{"agent_id":%q}}}],"default_target":{"name":"round_robin","args":{}}}`, k.alice, hidden, k.bob)
	k.flow = open(`{"creator":"alice","type":"workflow","participants":["bob","hana"],"knobs":{"graph":` + graph + `,"context_vars":{"area":"` + hidden + ` area"}}}`)
	k.request = must("/v1/channels/"+k.flow+"/requests", `{"asked_by":"alice","for":"hana","kind":"approval","title":"`+hidden+` request","choices":[{"id":"yes"}]}`)["request_id"].(string)
	k.ours = open(`{"creator":"alice","type":"discussion","participants":["bob","eve"],"labels":{"title":"ours"}}`)
	k.memory = must("/v1/channels/"+k.ours+"/events", `{"sender":"alice","audience":["bob"],"text":"`+hidden+` whisper"}`)["envelope_id"].(string)
	must("/v1/channels/"+k.ours+"/events", `{"sender":"alice","audience":["bob"],"event_type":"app.note","event_data":{"text":"`+hidden+` note"}}`)
	k.task = "their-task"
	if err := s.hub.ObserveTask(t.Context(), task.Task{ID: k.task, Owner: k.alice, Channel: k.theirs, State: task.Running, Spec: task.Spec{Title: hidden + " task"}, CreatedAt: time.Now()}, nil, hub.MirrorOff); err != nil {
		t.Fatal(err)
	}
	return k
}

// questions are ways to ask for what a route is not asked for by itself.
func (k *secrets) questions() []string {
	list := []string{"", "?limit=500&newest", "?count", "?form=row", "?form=row&sort=activity&newest", "?form=row&sort=due", "?form=jsonl", "?form=messages", "?form=markdown", "?form=bundle", "?form=bundle&home=true", "?at=0", "?at=1", "?before=9", "?around=1", "?around=" + k.memory}
	for name, values := range map[string][]string{
		"as": {"alice", "bob", k.bob}, "agent": {"alice", k.bob}, "owner": {"alice"}, "asked_by": {"alice"}, "for": {"hana", "bob"}, "sender": {"alice"}, "q": {hidden, "alice", k.theirs},
		"match": {hidden}, "channel": {k.theirs, k.flow, k.ours}, "waiting_for": {"people", "alice", "hana"}, "label": {"title:" + hidden + " title", "title=" + hidden + " title"},
		"state": {"open", "active", "running"}, "kind": {"turn", "invite", "approval", "channel_created"}, "sort": {"due", "pending"}, "query": {"alice"}, "series": {"admitted"},
	} {
		for _, value := range values {
			list = append(list, "?"+url.Values{name: {value}}.Encode(), "?"+url.Values{name: {value}, "form": {"row"}, "count": {""}}.Encode())
		}
	}
	return list
}

// taken returns a question with the parameters that a route takes; others are refused.
func taken(question string, takes map[string]bool) string {
	given, _ := url.ParseQuery(strings.TrimPrefix(question, "?"))
	maps.DeleteFunc(given, func(name string, _ []string) bool { return !takes[name] })
	if len(given) == 0 {
		return ""
	}
	return "?" + given.Encode()
}

// reads are all routes of the document that only read, but for streams, and each
// one's questions.
func (k *secrets) reads() (paths []string) {
	c := newContract(k.site.t.(*testing.T), k.site)
	for path, item := range c.doc["paths"].(map[string]any) {
		get, ok := item.(map[string]any)["get"].(map[string]any)
		if !ok || path == "/v1/watch" || path == "/v1/openapi.json" || strings.HasPrefix(path, "/v1/chat/") { // chats: TestWhoSeesASession
			continue
		}
		takes := map[string]bool{}
		parameters, _ := get["parameters"].([]any)
		for _, p := range parameters {
			takes[p.(map[string]any)["name"].(string)] = true
		}
		ids := []string{k.theirs, k.flow, k.ours, k.request, k.task, "alice", k.bob, "turn." + k.flow + "." + k.alice, k.memory}
		if !strings.Contains(path, "{id}") {
			ids = ids[:1]
		}
		for _, id := range ids {
			for _, view := range []string{"full_transcript", "windowed_summary"} {
				at := strings.NewReplacer("{id}", url.PathEscape(id), "{name}", view).Replace(path)
				for _, question := range k.questions() {
					paths = append(paths, at+taken(question, takes))
				}
			}
		}
	}
	slices.Sort(paths)
	return slices.Compact(paths)
}

// A key of an agent finds nothing of what others say among themselves, on whatever
// route that the document has, however it asks.
func TestAnAgentsKeyFindsNothingOfOthers(t *testing.T) {
	t.Parallel()
	k := keepSecrets(t)
	asked, seen := 0, 0
	for _, path := range k.reads() {
		answer := k.site.do("agent:eve", "GET", path, "")
		body := string(readAll(t, answer))
		asked++
		if answer.StatusCode == http.StatusOK {
			seen++
		}
		if answer.StatusCode >= 500 || strings.Contains(body, "is not a parameter") {
			t.Errorf("%s: %d %s", path, answer.StatusCode, body)
		}
		// A refusal may repeat what was asked for.
		if answer.StatusCode < 400 && strings.Contains(body, hidden) {
			t.Errorf("%s: %.300s", path, body)
		}
		if answer.StatusCode < 400 && strings.HasPrefix(path, "/v1/channels/"+k.theirs) {
			t.Errorf("%s: %d", path, answer.StatusCode)
		}
	}
	if asked < 500 || seen < 80 {
		t.Errorf("%d questions, of which %d were answered", asked, seen)
	}
	// The same routes show it to who may see all: the test looks where it is.
	for _, path := range []string{"/v1/channels?form=row", "/v1/channels/" + k.theirs + "/events", "/v1/channels/" + k.flow + "/state", "/v1/channels/" + k.flow + "/graph", "/v1/requests", "/v1/tasks", "/v1/channels/" + k.ours + "/export?form=jsonl"} {
		if body := string(readAll(t, k.site.do(operator, "GET", path, ""))); !strings.Contains(body, hidden) {
			t.Errorf("%s shows an operator %.300s", path, body)
		}
	}
	_, sum := k.site.ask("agent:eve", "GET", "/v1/summary", "")
	if got := fmt.Sprint(sum["channels"].(map[string]any)["active"], sum["requests"].(map[string]any)["open"], sum["tasks"].(map[string]any)["running"]); got != "1 0 0" {
		t.Errorf("her summary counts %s: %v", got, sum)
	}
}

// Nor does a stream tell her, or a change of what it watches.
func TestAnAgentsWatchTellsNothingOfOthers(t *testing.T) {
	t.Parallel()
	k := keepSecrets(t)
	s := k.site
	for _, topic := range []string{"channel:" + k.theirs, "channel:" + k.flow, "audit", "stats"} {
		if status, body := s.ask("agent:eve", "GET", watchPath(topic), ""); status != http.StatusForbidden {
			t.Errorf("%s: %d %v", topic, status, body)
		}
	}
	all := strings.Join([]string{k.theirs, k.flow, k.ours}, ",")
	f := s.follow("agent:eve", watchPath("channel:"+k.ours, "requests", "rows:"+all, "summary", "agents:"+k.alice+","+k.bob))
	defer f.body.Close()
	_, hello := f.until("hello")
	for _, topic := range []string{"stats", "audit", "channel:" + k.theirs} {
		body, _ := json.Marshal(map[string]any{"topics": []string{topic}})
		if status, answer := s.ask("agent:eve", "PUT", "/v1/watch/"+hello["watch"].(string), string(body)); status/100 != 4 {
			t.Errorf("a watch is changed to %s: %d %v", topic, status, answer)
		}
	}
	s.tell(k.theirs, "bob", hidden+" again")
	s.ask(operator, "POST", "/v1/channels/"+k.flow+"/requests", `{"asked_by":"alice","for":"hana","kind":"approval","title":"`+hidden+` again","choices":[{"id":"yes"}]}`)
	s.ask(operator, "POST", "/v1/channels/"+k.ours+"/live", `{"sender":"alice","audience":["bob"],"text":"`+hidden+` live"}`)
	s.ask(operator, "POST", "/v1/channels/"+k.ours+"/events", `{"sender":"alice","audience":["bob"],"event_type":"app.note","event_data":{"text":"`+hidden+` once more"}}`)
	s.ask(operator, "POST", "/v1/channels/"+k.ours+"/events", `{"sender":"alice","event_type":"app.note","event_data":{"text":"for everyone"}}`)
	rows := 0
	for done := false; !done; {
		ev := f.next()
		if strings.Contains(ev.data, hidden) {
			t.Errorf("%s: %.300s", ev.name, ev.data)
		}
		rows += strings.Count(ev.name, "row")
		done = ev.name == "envelope" && strings.Contains(ev.data, "for everyone")
	}
	if rows == 0 {
		t.Error("no row was told")
	}
}

// What is not hers is not hers to change.
func TestAnAgentsKeyChangesNothingOfOthers(t *testing.T) {
	t.Parallel()
	k := keepSecrets(t)
	s := k.site
	for _, act := range []struct{ method, path, body string }{
		{"POST", "/v1/channels/" + k.theirs + "/events", `{"text":"hello"}`},
		{"POST", "/v1/channels/" + k.theirs + "/events", `{"sender":"alice","text":"hello"}`},
		{"POST", "/v1/channels/" + k.ours + "/events", `{"sender":"alice","text":"hello"}`},
		{"POST", "/v1/channels/" + k.theirs + "/live", `{"text":"hello"}`},
		{"POST", "/v1/channels/" + k.ours + "/live", `{"sender":"alice","text":"hello"}`},
		{"POST", "/v1/channels/" + k.theirs + "/requests", `{"kind":"approval","title":"May I?","choices":[{"id":"yes"}]}`},
		{"POST", "/v1/channels/" + k.ours + "/requests", `{"asked_by":"alice","kind":"approval","title":"May I?","choices":[{"id":"yes"}]}`},
		{"POST", "/v1/requests/" + k.request + "/answer", `{"choice":"yes"}`},
		{"POST", "/v1/requests/turn." + k.flow + "." + k.alice + "/answer", `{"text":"yes"}`},
		{"POST", "/v1/channels/" + k.theirs + "/close", `{"reason":"mine"}`},
		{"POST", "/v1/channels/close", `{"filter":{"channel_ids":["` + k.theirs + `"]},"reason":"mine"}`},
		{"DELETE", "/v1/channels/" + k.theirs, ""},
		{"DELETE", "/v1/channels/" + k.ours, ""},
		{"POST", "/v1/tasks/" + k.task + "/cancel", `{}`},
		{"POST", "/v1/tasks/" + k.task + "/cancel", `{"by":"alice"}`},
		{"POST", "/v1/channels", `{"creator":"alice","type":"conversation","participants":["bob"]}`},
		{"POST", "/v1/agents", `{"name":"mallory"}`},
		{"DELETE", "/v1/agents/alice", ""},
		{"PUT", "/v1/agents/alice/rule", `{}`},
		{"DELETE", "/v1/agents/alice/rule", ""},
		{"PUT", "/v1/agents/alice/budget", `{}`},
		{"DELETE", "/v1/agents/alice/budget", ""},
		{"POST", "/v1/agents/alice/grants", `{}`},
		{"POST", "/v1/keys", `{"role":"operator"}`},
		{"DELETE", "/v1/keys/k", ""},
		{"POST", "/v1/import", `{}`},
		{"DELETE", "/v1/sessions/x", ""},
	} {
		if status, answer := s.ask("agent:eve", act.method, act.path, act.body); status/100 != 4 {
			t.Errorf("%s %s %s: %d %v", act.method, act.path, act.body, status, answer)
		}
	}
	for id, want := range map[string]string{k.theirs: "active", k.flow: "active", k.ours: "active"} {
		if _, ch := s.ask(operator, "GET", "/v1/channels/"+id, ""); ch["state"] != want {
			t.Errorf("%s is %v", id, ch["state"])
		}
	}
	if _, r := s.ask(operator, "GET", "/v1/requests/"+k.request, ""); r["state"] != "open" {
		t.Errorf("the request is %v", r["state"])
	}
}
