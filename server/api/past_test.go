package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// incident opens a workflow in which context decides who is next, and plays it:
// triage sets the area, database hands over to network, network finishes.
func (s *site) incident() (id string, people map[string]string) {
	s.t.Helper()
	people = map[string]string{}
	for _, name := range []string{"triage", "database", "network"} {
		people[name] = s.agent(name)
	}
	graph := fmt.Sprintf(`{"initial_speaker":%[1]q,"max_turns":9,"transitions":[
		{"when":{"name":"from_speaker","args":{"agent_id":%[3]q}},"then":{"name":"terminate","args":{"reason":"done"}}},
		{"when":{"name":"context_equals","args":{"key":"area","value":"database"}},"then":{"name":"agent","args":{"agent_id":%[2]q}}}]}`,
		people["triage"], people["database"], people["network"])
	status, ch := s.ask(operator, "POST", "/v1/channels", fmt.Sprintf(`{"creator":"triage","type":"workflow","participants":["database","network"],"knobs":{"graph":%s,"context_vars":{"severity":1}}}`, graph))
	if status != http.StatusCreated {
		s.t.Fatalf("open: %d %v", status, ch)
	}
	id = ch["channel_id"].(string)
	post := func(sender, body string) {
		if status, got := s.ask(operator, "POST", "/v1/channels/"+id+"/events", fmt.Sprintf(`{"sender":%q,%s}`, sender, body)); status != http.StatusCreated {
			s.t.Fatalf("%s: %d %v", sender, status, got)
		}
	}
	post("network", `"event_type":"ag2.context.set","event_data":{"set":{"area":"database"},"delete":[]}`)
	post("triage", `"event_type":"ag2.packet","event_data":{"routing":{"kind":"text"},"context_updates":{"set":{"severity":2},"delete":[]},"body":"slow"}`)
	post("database", fmt.Sprintf(`"event_type":"ag2.packet","event_data":{"routing":{"kind":"handoff","tool":"hand_over","target":%q,"reason":"loss"},"context_updates":{"set":{},"delete":["area"]},"body":"over"}`, people["network"]))
	return id, people
}

func (s *site) past(path string, to any) {
	s.t.Helper()
	resp := s.do(operator, "GET", path, "")
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		s.t.Fatalf("GET %s: %d", path, resp.StatusCode)
	}
	if err := json.NewDecoder(resp.Body).Decode(to); err != nil {
		s.t.Fatal(err)
	}
}

type pastState struct {
	At struct {
		Sequence   uint64 `json:"sequence"`
		Position   string `json:"position"`
		EnvelopeID string `json:"envelope_id"`
	} `json:"at"`
	State   string          `json:"state"`
	Reason  *string         `json:"close_reason"`
	Folded  json.RawMessage `json:"folded_state"`
	Context []struct {
		Key      string `json:"key"`
		Value    any    `json:"value"`
		Sequence int    `json:"sequence"`
		Sender   string `json:"sender_id"`
	} `json:"context"`
	Turn *struct {
		Name string `json:"name"`
		Kind string `json:"kind"`
	} `json:"turn"`
}

func TestStateAsItWas(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	id, people := s.incident()
	at := func(n int) (p pastState) {
		s.past(fmt.Sprintf("/v1/channels/%s/state?at=%d", id, n), &p)
		return p
	}
	var now struct {
		Length int             `json:"length"`
		Folded json.RawMessage `json:"folded_state"`
	}
	s.past("/v1/channels/"+id, &now)
	n := now.Length
	if p := at(0); p.State != "pending" || p.At.EnvelopeID != "" || p.Turn == nil || p.Turn.Name != "triage" || p.Turn.Kind != "agent" || len(p.Context) != 1 || p.Context[0].Sender != people["triage"] {
		t.Errorf("before the first event: %+v", p)
	}
	set := at(n - 2)
	if len(set.Context) != 2 || set.Context[0].Key != "area" || set.Context[0].Sequence != n-2 || set.Context[0].Sender != people["network"] || set.State != "active" {
		t.Errorf("after the context was set: %+v", set)
	}
	turn := at(n - 1)
	if turn.Turn == nil || turn.Turn.Name != "database" || turn.Context[1].Value != 2.0 || turn.Context[1].Sender != people["triage"] {
		t.Errorf("after triage spoke: %+v", turn)
	}
	end := at(n)
	if string(end.Folded) != string(now.Folded) || end.Turn == nil || end.Turn.Name != "network" || len(end.Context) != 1 {
		t.Errorf("at the end: %+v\nwant the fold %s", end, now.Folded)
	}
	if status, got := s.ask(operator, "GET", fmt.Sprintf("/v1/channels/%s/state?at=%d", id, n+1), ""); status != http.StatusBadRequest || got["detail"] != fmt.Sprintf(`at="%d" is not an event of this channel; it is 0 (before the first) to %d`, n+1, n) {
		t.Errorf("beyond the end: %d %v", status, got)
	}
	s.ask(operator, "POST", "/v1/channels/"+id+"/close", `{"reason":"enough"}`)
	var closed pastState
	s.past("/v1/channels/"+id+"/state", &closed)
	if closed.State != "closed" || closed.Reason == nil || *closed.Reason != "enough" || closed.Turn != nil {
		t.Errorf("closed: %+v", closed)
	}
}

func TestPathSaysWhy(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	id, people := s.incident()
	type explained struct {
		Holds bool `json:"holds"`
		Read  []struct {
			What     string `json:"what"`
			Value    any    `json:"value"`
			Sequence int    `json:"sequence"`
			Sender   string `json:"sender_id"`
		} `json:"read"`
	}
	type step struct {
		Sequence int        `json:"sequence"`
		Turn     int        `json:"turn"`
		Speaker  string     `json:"speaker_id"`
		By       string     `json:"by"`
		Rule     *int       `json:"rule"`
		Tool     string     `json:"tool"`
		Because  *explained `json:"because"`
		Decision struct {
			Speaker string `json:"speaker_id"`
		} `json:"decision"`
		PassedOver []struct {
			Rule    int       `json:"rule"`
			Because explained `json:"because"`
		} `json:"passed_over"`
		Changed []struct {
			Key           string `json:"key"`
			Before, After any
		} `json:"changed"`
	}
	var page struct {
		Steps []step `json:"steps"`
		Next  string `json:"next"`
		Prev  string `json:"prev"`
	}
	s.past("/v1/channels/"+id+"/path", &page)
	if len(page.Steps) != 2 || page.Next != "" || page.Prev != "" {
		t.Fatalf("%+v", page)
	}
	first, second := page.Steps[0], page.Steps[1]
	if first.Turn != 1 || first.By != "rule" || first.Rule == nil || *first.Rule != 1 || first.Because == nil || !first.Because.Holds || first.Decision.Speaker != people["database"] {
		t.Errorf("the first turn: %+v", first)
	}
	if r := first.Because.Read[0]; r.What != "area" || r.Value != "database" || r.Sender != people["network"] || r.Sequence != first.Sequence-1 {
		t.Errorf("it read %+v", r)
	}
	if len(first.PassedOver) != 1 || first.PassedOver[0].Rule != 0 || first.PassedOver[0].Because.Holds || len(first.Changed) != 1 || first.Changed[0].Key != "severity" {
		t.Errorf("the first turn: %+v", first)
	}
	if second.By != "handoff" || second.Tool != "hand_over" || second.Because != nil || second.Decision.Speaker != people["network"] || second.Changed[0].Key != "area" {
		t.Errorf("the second turn: %+v", second)
	}
	s.past(fmt.Sprintf("/v1/channels/%s/path?before=%d&limit=1", id, second.Sequence+1), &page)
	if len(page.Steps) != 1 || page.Steps[0].Turn != 2 || page.Prev != fmt.Sprint(second.Sequence) {
		t.Errorf("the last turn: %+v", page)
	}
	s.past(fmt.Sprintf("/v1/channels/%s/path?after=%d", id, first.Sequence), &page)
	if len(page.Steps) != 1 || page.Steps[0].Turn != 2 {
		t.Errorf("after the first turn: %+v", page)
	}
	var graph struct {
		MaxTurns int `json:"max_turns"`
		Nodes    []struct {
			Label          string
			Current, Taken bool
		} `json:"nodes"`
		Edges []struct {
			Kind  string
			Turns []int
		} `json:"edges"`
	}
	s.past("/v1/channels/"+id+"/graph", &graph)
	current := ""
	for _, n := range graph.Nodes {
		if n.Current {
			current += n.Label
		}
	}
	taken := 0
	for _, e := range graph.Edges {
		taken += len(e.Turns)
	}
	if current != "network" || graph.MaxTurns != 9 || taken < 2 {
		t.Errorf("the graph: %+v", graph)
	}
	talk := s.open("discussion", "triage", "database")
	if status, got := s.ask(operator, "GET", "/v1/channels/"+talk+"/graph", ""); status != http.StatusNotFound || got["detail"] != "this channel has no graph; channels of type workflow have one" {
		t.Errorf("a discussion's graph: %d %v", status, got)
	}
}

// A seek anywhere in a long channel gives what a fold from the beginning gives,
// in any order of seeking.
func TestSeeksInALongChannel(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	a := s.agent("a")
	s.agent("b")
	s.unbounded("b")
	graph := fmt.Sprintf(`{"initial_speaker":%[1]q,"transitions":[{"when":{"name":"always","args":{}},"then":{"name":"stay","args":{}}}]}`, a)
	// The second kept state would weigh too much with these variables.
	_, ch := s.ask(operator, "POST", "/v1/channels", fmt.Sprintf(`{"creator":"a","type":"workflow","participants":["b"],"knobs":{"graph":%s,"context_vars":{"big":%q}}}`, graph, strings.Repeat("x", 600_000)))
	id := ch["channel_id"].(string)
	for n := range 2100 {
		if status, got := s.ask(operator, "POST", "/v1/channels/"+id+"/events", fmt.Sprintf(`{"sender":"a","event_type":"ag2.packet","event_data":{"routing":{"kind":"text"},"context_updates":{"set":{"n":%d},"delete":[]},"body":""}}`, n)); status != http.StatusCreated {
			t.Fatalf("%d: %d %v", n, status, got)
		}
	}
	var now struct {
		Length int `json:"length"`
	}
	s.past("/v1/channels/"+id, &now)
	first := now.Length - 2099 // the sequence of n = 0
	for _, n := range []int{2099, 5, 1023, 1024, 1025, 2047, 2048, 0, 1500} {
		var p pastState
		s.past(fmt.Sprintf("/v1/channels/%s/state?at=%d", id, first+n), &p)
		if len(p.Context) != 2 || p.Context[1].Value != float64(n) || p.Context[1].Sequence != first+n {
			t.Errorf("after n = %d: %+v", n, p.Context[1:])
		}
	}
	var page struct {
		Steps []struct{ Turn int } `json:"steps"`
	}
	s.past(fmt.Sprintf("/v1/channels/%s/path?before=%d&limit=300", id, now.Length+1), &page)
	if len(page.Steps) != 300 || page.Steps[299].Turn != 2100 || page.Steps[0].Turn != 1801 {
		t.Errorf("%d steps", len(page.Steps))
	}
}
