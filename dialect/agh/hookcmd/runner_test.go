package hookcmd_test

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/parley-hub/parley/dialect/agh/hookcmd"
)

// TestMain is also the command: it appends its input to a file, or fails, or waits
// until a file is removed.
func TestMain(m *testing.M) {
	if len(os.Args) < 4 || os.Args[1] != "hook" {
		os.Exit(m.Run())
	}
	kind, file := os.Args[2], os.Args[3]
	event, err := io.ReadAll(os.Stdin)
	if err != nil {
		os.Exit(2)
	}
	for kind == "wait" {
		if _, err := os.Stat(file); err != nil {
			os.Exit(0)
		}
		time.Sleep(time.Millisecond) //nolint:forbidigo // it is another process
	}
	if kind == "fail" {
		os.Exit(1)
	}
	if secret := os.Getenv("PARLEY_SECRET"); secret != "" {
		event = []byte(secret)
	}
	f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err == nil {
		_, err = f.Write(event)
	}
	if err != nil {
		os.Exit(2)
	}
	os.Exit(0)
}

func command(t *testing.T, kind string) (argv []string, file string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	file = filepath.Join(t.TempDir(), "told")
	return []string{self, "hook", kind, file}, file
}

// counts returns the number of events, by their result.
func counts(t *testing.T, r *hookcmd.Runner) map[string]int {
	t.Helper()
	registry := prometheus.NewRegistry()
	registry.MustRegister(r)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]int{}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			found[m.GetLabel()[0].GetValue()] = int(m.GetCounter().GetValue())
		}
	}
	return found
}

func counted(t *testing.T, r *hookcmd.Runner, want map[string]int) {
	t.Helper()
	if diff := cmp.Diff(want, counts(t, r)); diff != "" {
		t.Errorf("counted (-want +got):\n%s", diff)
	}
}

func TestEventsAreToldInOrder(t *testing.T) {
	t.Setenv("PARLEY_SECRET", "hunter2") // not visible to the command
	argv, file := command(t, "append")
	r := hookcmd.New(hookcmd.Options{Command: argv, Linger: time.Hour, Events: []string{"a", "b"}})
	for i := range 5 {
		r.Tell("a", fmt.Appendf(nil, `{"n":%d}`, i))
		r.Tell("other", []byte(`{}`))
	}
	for range 2 {
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
	}
	r.Tell("a", []byte("late"))
	got, err := os.ReadFile(file)
	if want := "{\"n\":0}\n{\"n\":1}\n{\"n\":2}\n{\"n\":3}\n{\"n\":4}\n"; err != nil || string(got) != want {
		t.Errorf("told %q, %v", got, err)
	}
	counted(t, r, map[string]int{"told": 5})
}

func TestACommandThatFailsIsCounted(t *testing.T) {
	t.Parallel()
	for name, argv := range map[string][]string{"exit": nil, "not there": {filepath.Join(t.TempDir(), "nothing")}} {
		if argv == nil {
			argv, _ = command(t, "fail")
		}
		var log bytes.Buffer
		r := hookcmd.New(hookcmd.Options{Command: argv, Linger: time.Hour, Log: slog.New(slog.NewTextHandler(&log, nil))})
		for range 3 {
			r.Tell("a", []byte("{}"))
		}
		_ = r.Close()
		counted(t, r, map[string]int{"failed": 3})
		if n := strings.Count(log.String(), "agh.hooks.command failed"); n != 1 {
			t.Errorf("%s: %d lines of log: %s", name, n, &log)
		}
	}
}

func TestWhatWaitsIsBounded(t *testing.T) {
	t.Parallel()
	argv, file := command(t, "wait")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	r := hookcmd.New(hookcmd.Options{Command: argv, Linger: time.Hour, Queue: 2, Timeout: time.Hour})
	for range 10 {
		r.Tell("a", []byte("{}"))
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	_ = r.Close()
	n := counts(t, r)
	if n["told"] < 2 || n["told"] > 3 || n["told"]+n["dropped"] != 10 {
		t.Errorf("counted %v", n)
	}
}

func TestACommandThatHangsIsEnded(t *testing.T) {
	t.Parallel()
	argv, file := command(t, "wait")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	r := hookcmd.New(hookcmd.Options{Command: argv, Linger: time.Hour, Timeout: time.Millisecond})
	r.Tell("a", []byte("{}"))
	_ = r.Close()
	counted(t, r, map[string]int{"failed": 1})
}

func TestCloseEndsACommandThatHangs(t *testing.T) {
	t.Parallel()
	argv, file := command(t, "wait")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	r := hookcmd.New(hookcmd.Options{Command: argv, Timeout: time.Hour, Linger: time.Millisecond})
	for range 3 {
		r.Tell("a", []byte("{}"))
	}
	_ = r.Close()
	if n := counts(t, r); n["failed"]+n["dropped"] != 3 {
		t.Errorf("counted %v", n)
	}
}
