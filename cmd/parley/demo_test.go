package main

import (
	"bufio"
	"encoding/json"
	"net/http"
	"os"
	"slices"
	"testing"
	"time"
)

// TestDemoForPrograms plays the demo with -o json, and kills it while it keeps
// its hub: the hub ends with it.
func TestDemoForPrograms(t *testing.T) {
	t.Parallel()
	s := newScene(t, false)
	cmd, _ := s.command(t.Context(), "parley", "demo", "--keep", "-o", "json")
	cmd.Stdout = nil
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var seen []string
	var last struct {
		Event    string   `json:"event"`
		URL      string   `json:"url"`
		Channel  string   `json:"channel_id"`
		Path     []string `json:"path"`
		Lost     *int     `json:"lost"`
		Doubled  *int     `json:"doubled"`
		Reason   string   `json:"close_reason"`
		Envelope *event   `json:"envelope"`
	}
	lines := bufio.NewScanner(out)
	for last.Event != "result" && lines.Scan() {
		if err := json.Unmarshal(lines.Bytes(), &last); err != nil {
			t.Fatalf("%v: %s", err, lines.Text())
		}
		if last.Event == "envelope" && last.Envelope.Sequence == 0 {
			t.Errorf("no envelope: %s", lines.Text())
		}
		if !slices.Contains(seen, last.Event) {
			seen = append(seen, last.Event)
		}
	}
	for _, want := range []string{"hub_started", "assembled", "envelope", "objection", "hub_killed", "hub_back", "result"} {
		if !slices.Contains(seen, want) {
			t.Errorf("%s is not in %v", want, seen)
		}
	}
	if last.Lost == nil || *last.Lost != 0 || *last.Doubled != 0 || last.Reason != "resolved" || last.Channel == "" || len(last.Path) < 3 {
		t.Errorf("the result is %+v", last)
	}
	if err := cmd.Process.Signal(os.Kill); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // it was killed: there is no other end
	poll := time.NewTicker(50 * time.Millisecond)
	defer poll.Stop()
	late := time.After(startTimeout)
	for {
		answer, err := http.Get(last.URL + "/healthz") //nolint:noctx // on this machine
		if err != nil {
			return
		}
		_ = answer.Body.Close()
		select {
		case <-poll.C:
		case <-late:
			t.Fatal("the hub goes on without its demo")
		}
	}
}

func TestAnInterruptedDemoSaysSo(t *testing.T) {
	t.Parallel()
	s := newScene(t, false)
	cmd, out := s.command(t.Context(), "parley", "demo")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	out.await(t, "opens the incident")
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	err := cmd.Wait()
	if got := out.String(); err == nil || !slices.Contains(slices.Collect(linesOf(got)), "parley: the demo was stopped before its end") {
		t.Errorf("%v: %s", err, got)
	}
}
