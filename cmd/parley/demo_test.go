package main

import (
	"bufio"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	v1 "github.com/parley-hub/parley/client/v1"
)

// playing is a demo with -o json that keeps its hub, at its end.
type playing struct {
	cmd  *exec.Cmd
	seen []string // the names of its events
	data string   // the hub's folder
	last struct {
		Event    string    `json:"event"`
		URL      string    `json:"url"`
		Data     string    `json:"data"`
		Channel  string    `json:"channel_id"`
		Path     []string  `json:"path"`
		Lost     *int      `json:"lost"`
		Doubled  *int      `json:"doubled"`
		Reason   string    `json:"close_reason"`
		Envelope *v1.Event `json:"envelope"`
	}
}

func playDemo(t *testing.T) *playing {
	t.Helper()
	p := &playing{}
	p.cmd, _ = newScene(t, false).command(t.Context(), "parley", "demo", "--keep", "-o", "json")
	p.cmd.Stdout = nil
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for p.last.Event != "result" && lines.Scan() {
		if err := json.Unmarshal(lines.Bytes(), &p.last); err != nil {
			t.Fatalf("%v: %s", err, lines.Text())
		}
		switch p.last.Event {
		case "hub_started":
			p.data = p.last.Data
		case "envelope":
			if p.last.Envelope.Sequence == 0 {
				t.Errorf("no envelope: %s", lines.Text())
			}
		}
		if !slices.Contains(p.seen, p.last.Event) {
			p.seen = append(p.seen, p.last.Event)
		}
	}
	return p
}

// closed waits until the hub has closed its store in good order.
func (p *playing) closed(t *testing.T) {
	t.Helper()
	poll := time.NewTicker(20 * time.Millisecond)
	defer poll.Stop()
	late := time.After(startTimeout)
	for {
		if _, err := os.Stat(filepath.Join(p.data, "SEAL")); err == nil {
			return
		}
		select {
		case <-poll.C:
		case <-late:
			t.Fatal("the hub goes on without its demo")
		}
	}
}

func TestDemoForPrograms(t *testing.T) {
	t.Parallel()
	p := playDemo(t)
	for _, want := range []string{"hub_started", "assembled", "envelope", "objection", "hub_killed", "hub_back", "approval_asked", "approved", "result"} {
		if !slices.Contains(p.seen, want) {
			t.Errorf("%s is not in %v", want, p.seen)
		}
	}
	if r := p.last; r.Lost == nil || *r.Lost != 0 || *r.Doubled != 0 || r.Reason != "resolved" || r.Channel == "" || len(r.Path) < 3 {
		t.Errorf("the result is %+v", r)
	}
	if err := p.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Wait(); err != nil {
		t.Error(err)
	}
	p.closed(t)
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
