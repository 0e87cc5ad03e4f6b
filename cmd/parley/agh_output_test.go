package main

import (
	"encoding/json"
	"strings"
	"testing"
)

// Every form of §11.4, with --json, and forms that there are none of.
func TestAGHForms(t *testing.T) {
	t.Parallel()
	s := newScene(t, false)
	s.background(t, "is running", "parley", "serve")
	out := s.output(t, aHarbor+`
echo ==threads; parley agh threads list $dock -o json
echo ==lines; parley agh threads list $dock -o jsonl
echo ==peers; parley agh peers --workspace ws_harbor --json
echo ==peerlines; parley agh peers --workspace ws_harbor -o jsonl
echo ==toon; parley agh work status --workspace ws_harbor --work work_tide_1 -o toon
echo ==human; parley agh work status --workspace ws_harbor --work work_tide_1 -o human
echo ==status; parley agh status -o jsonl
echo ==wrong; parley agh status -o xml 2>&1 || true
echo ==elsewhere; parley channels list -o toon 2>&1 || true
`)
	part := map[string]string{}
	for _, text := range strings.Split(out, "==")[1:] {
		name, rest, _ := strings.Cut(text, "\n")
		part[name] = rest
	}
	var wrapped struct {
		Threads []json.RawMessage `json:"threads"`
	}
	if err := json.Unmarshal([]byte(part["threads"]), &wrapped); err != nil || len(wrapped.Threads) != 1 || part["lines"] != string(wrapped.Threads[0])+"\n" {
		t.Errorf("%v: %s, in lines %s", err, part["threads"], part["lines"])
	}
	var peers []json.RawMessage
	if err := json.Unmarshal([]byte(part["peers"]), &peers); err != nil || len(peers) != 3 || strings.Count(part["peerlines"], "\n") != 3 {
		t.Errorf("%v: %s, in lines %s", err, part["peers"], part["peerlines"])
	}
	if strings.Count(part["status"], "\n") != 1 {
		t.Errorf("a status that is no list: %s", part["status"])
	}
	for name, want := range map[string]string{
		"toon": "work:\n  work_id: work_tide_1\n", "human": "work_tide_1", "wrong": "human, wide, json, jsonl or toon", "elsewhere": "text, json or wide",
	} {
		if !strings.Contains(part[name], want) {
			t.Errorf("%s: %q is not in %s", name, want, part[name])
		}
	}
	if strings.Contains(part["human"], "work:") {
		t.Errorf("-o human is text: %s", part["human"])
	}
}
