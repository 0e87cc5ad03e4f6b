package main

import (
	"bufio"
	"context"
	"encoding/json"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/parley-hub/parley/internal/bench"
	"github.com/parley-hub/parley/internal/bench/ag2bench"
)

// A short run on real processes yields every figure, also against another hub;
// what they say is for parley bench.
func TestBenchAG2(t *testing.T) {
	t.Parallel()
	hub := benchHub("parley")
	report, err := ag2bench.Run(t.Context(), ag2bench.Options{
		Hub: hub,
		Floor: func(ctx context.Context) *exec.Cmd {
			return exec.CommandContext(ctx, "parley", "bench", "--"+floorFlag)
		},
		Against: otherHub(t, hub(t.Context(), t.TempDir())),
		Dir:     t.TempDir(), Connections: 2, InFlight: 4, Readers: 3, Idle: 20, Plan: bench.Plan{Seconds: 0.1},
	})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range report.Figures {
		names = append(names, f.Name)
		// Twenty connections weigh less than what the collector leaves between two looks.
		if f.Ours <= 0 && !strings.HasPrefix(f.Name, "heap") {
			t.Errorf("%s is %g %s", f.Name, f.Ours, f.Unit)
		}
	}
	want := []string{
		"post → delivered, one in flight, p50", "post → delivered, one in flight, p99", "pipelined admissions, 2 × 4", "the same posts, decoded and answered only",
		"fan-out 1 → 3", "writes for each delivery, saturated", "heap and stacks of an idle connection",
		"post → delivered, p50, with 20 idle", "pipelined admissions, with 20 idle", "fan-out, with 20 idle",
		"post → delivered, p50, against", "pipelined admissions, against",
	}
	if len(names) != len(want) {
		t.Fatalf("the figures are %q", names)
	}
	for i, name := range names {
		if !strings.HasPrefix(name, want[i]) {
			t.Errorf("figure %d is %q, want %q", i, name, want[i])
		}
	}
}

// otherHub starts a hub that the bench has not, and says where it is.
func otherHub(t *testing.T, cmd *exec.Cmd) string {
	t.Helper()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
	})
	var told started
	line, err := bufio.NewReader(out).ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, &told)
	}
	if err != nil {
		t.Fatal(err)
	}
	return told.Agents
}
