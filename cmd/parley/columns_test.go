package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"
)

// A list fits a screen, whatever it holds; with -o wide nothing is left out.
func TestListsFitAScreen(t *testing.T) {
	t.Parallel()
	columns := []column{{"CHANNEL", ids}, {"TURN", flexible}, {"TITLE", flexible}, {"ALL", wide}}
	long := strings.Repeat("名前", 60)
	rows := [][]string{
		{"0190aaaaaaaaaaaa00000000000000aa", "alice", long, "x"},
		{"home.0190aaaaaaaaaaab00000000000000ab", long, "short", "y"},
	}
	var out bytes.Buffer
	a := &app{streams: streams{out: &out}, output: "text"}
	if err := a.writeColumns(&out, columns, rows); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	for _, line := range lines {
		if width := ansi.StringWidth(line); width > screenWidth {
			t.Errorf("%d columns: %s", width, line)
		}
	}
	if len(lines) != 3 || !strings.HasPrefix(lines[1], "0190aaaaaaaaaaaa  alice ") || !strings.HasPrefix(lines[2], "0190aaaaaaaaaaab  ") || strings.Contains(lines[0], "ALL") {
		t.Errorf("%q", lines)
	}
	out.Reset()
	a.output = "wide"
	if err := a.writeColumns(&out, columns, rows); err != nil || !strings.Contains(out.String(), long) || !strings.Contains(out.String(), "home.0190aaaaaaaaaaab00000000000000ab") {
		t.Errorf("%v %s", err, out.String())
	}
	wide := strings.Split(strings.TrimSpace(out.String()), "\n")
	for i, line := range wide {
		before, _, _ := strings.Cut(line, []string{"ALL", "x", "y"}[i])
		if ansi.StringWidth(before) != ansi.StringWidth(wide[0])-len("ALL") {
			t.Errorf("the last column is not below its title: %q", line)
		}
	}
}

// TestEveryListFitsAScreen asks a hub whose names are long for each list: no line is
// wider than a screen, and with -o wide and --all-columns nothing is cut.
func TestEveryListFitsAScreen(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("long-", 30) + "end"
	hub := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answers := map[string]string{
			"/v1/keys":                 `{"keys":[{"id":"0123456789ab","role":"agent","agent":"LONG","created":"2026-01-02T03:04:05Z"}]}`,
			"/hpd/sessions":            `[{"id":"LONG","createdAt":"2026-01-02T03:04:05Z","lastActivity":"2026-01-02T03:04:05Z","metadata":{"LONG":"LONG"}}]`,
			"/hpd/sessions/s":          `{"id":"s","createdAt":"2026-01-02T03:04:05Z","lastActivity":"2026-01-02T03:04:05Z","metadata":{}}`,
			"/hpd/sessions/s/branches": `[{"id":"LONG","name":"LONG","messageCount":7,"forkedFrom":"LONG","forkedAtMessageId":"LONG","createdAt":"2026-01-02T03:04:05Z","lastActivity":"2026-01-02T03:04:05Z"}]`,
			"/peers":                   `{"peers":[{"peer_id":"LONG","channel":"LONG","presence_state":"local","session_id":"sess-0123456789abcdef","display_name":"LONG"}]}`,
			"/channels":                `{"channels":[{"channel":"LONG","peer_count":1,"message_count":2,"last_activity_at":"2026-01-02T03:04:05Z","purpose":"LONG"}]}`,
			"/threads":                 `{"threads":[{"thread_id":"LONG","title":"LONG","last_activity_at":"2026-01-02T03:04:05Z"}]}`,
			"/directs":                 `{"directs":[{"direct_id":"direct_84746c510d5845aa9078a8ca2f0f04a2","peer_a":"LONG","peer_b":"LONG","last_activity_at":"2026-01-02T03:04:05Z","last_message_preview":"LONG"}]}`,
			"/messages":                `{"messages":[{"message_id":"msg-0123456789abcdef","kind":"capability","peer_from":"LONG","peer_to":"LONG","work_id":"LONG","preview_text":"LONG","timestamp":"2026-01-02T03:04:05Z"}]}`,
			"/inbox":                   `{"messages":[{"id":"msg-0123456789abcdef","kind":"capability","from":"LONG","thread_id":"LONG","work_id":"LONG","body":{"text":"LONG"}}]}`,
		}
		text, ok := answers[r.URL.Path]
		if _, below, found := strings.Cut(r.URL.Path, "/network"); !ok && found {
			text = answers[below[strings.LastIndexByte(below, '/'):]]
		}
		fmt.Fprint(w, strings.ReplaceAll(text, "LONG", long))
	}))
	t.Cleanup(hub.Close)
	const place = " --workspace ws --channel dock"
	for _, line := range []string{
		"keys list", "sessions list", "sessions show s",
		"agh peers --workspace ws", "agh channels list --workspace ws", "agh threads list" + place, "agh directs list" + place,
		"agh threads messages --thread t" + place, "agh inbox --workspace ws --session s",
	} {
		args := append(strings.Fields(line), "--hub", hub.URL)
		code, narrow, stderr := call(t, nil, args...)
		lines := strings.Split(strings.TrimRight(narrow, "\n"), "\n")
		if code != exitFine || len(lines) < 2 || strings.Contains(narrow, long) || !strings.Contains(narrow, "…") {
			t.Errorf("%s: exit %d, %s%s", line, code, narrow, stderr)
		}
		for _, l := range lines {
			if width := ansi.StringWidth(l); width > screenWidth {
				t.Errorf("%s: %d columns: %s", line, width, l)
			}
		}
		for _, flag := range []string{"--output=wide", "--all-columns"} {
			if code, all, stderr := call(t, nil, append(args, flag)...); code != exitFine || !strings.Contains(all, long) {
				t.Errorf("%s %s: exit %d, %s%s", line, flag, code, all, stderr)
			}
		}
		if code, raw, _ := call(t, nil, append(args, "--output=json")...); code != exitFine || !json.Valid([]byte(raw)) {
			t.Errorf("%s -o json: exit %d, %s", line, code, raw)
		}
	}
}

// The status of a cluster fits a screen too. What is wrong with a shard is told in full.
func TestClusterStatusFitsAScreen(t *testing.T) {
	t.Parallel()
	long, trouble := strings.Repeat("long-", 30)+"end", "start NATS "+strings.Repeat("again ", 30)
	report := &clusterReport{
		Cluster: "parley", Epoch: 3, Nodes: []nodeReport{{Node: "n1", Ready: true, Lag: 7, Version: "v1.2.3", Address: "http://" + long}, {Node: long, Version: long}},
		Shards: []shardReport{{Shard: 0, Leader: long, Term: 4, Last: 1 << 60, Offset: 1 << 60}, {Shard: 1, Error: trouble}},
	}
	var out bytes.Buffer
	a := &app{streams: streams{out: &out}, output: "text"}
	if err := a.writeCluster(&out, report); err != nil {
		t.Fatal(err)
	}
	tables, after, _ := strings.Cut(out.String(), "\nshard 1: ")
	for _, line := range strings.Split(tables, "\n") {
		if width := ansi.StringWidth(line); width > screenWidth {
			t.Errorf("%d columns: %s", width, line)
		}
	}
	if strings.TrimSpace(after) != strings.TrimSpace(trouble) || !strings.Contains(tables, "no node serves") {
		t.Errorf("%s", out.String())
	}
	out.Reset()
	a.output = "wide"
	if err := a.writeCluster(&out, report); err != nil || strings.Count(out.String(), long) != 4 {
		t.Errorf("%v %s", err, out.String())
	}
}
