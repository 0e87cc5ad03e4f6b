package main

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/parley-hub/parley/journal/cluster/natsservers"
)

// TestStartUpChecks: what would make a cluster lose or hide something is refused,
// with the setting and its right value.
func TestStartUpChecks(t *testing.T) {
	t.Parallel()
	servers, err := natsservers.Start(t.Context(), 3, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(servers.Stop)
	monitors := servers.Monitors()
	at, all := "--cluster="+servers.URL(), "cluster.monitor="+strings.Join(monitors, ",")
	dir := t.TempDir()
	for what, c := range map[string]struct {
		args []string
		want []string
	}{
		"nobody is asked whether they sync": {[]string{"cluster", "init", at}, []string{"cluster.monitor", "cluster.assume_sync", "sync_interval: always"}},
		"fewer servers than replicas":       {[]string{"cluster", "init", at, "--set", "cluster.monitor=" + monitors[0]}, []string{"1 NATS servers answer, 3 are needed"}},
		"a monitor that does not answer":    {[]string{"cluster", "init", at, "--set", "cluster.monitor=http://127.0.0.1:1"}, []string{"http://127.0.0.1:1", "cluster.monitor", "start the NATS servers"}},
		"one monitor for three servers":     {[]string{"cluster", "init", at, "--set", "cluster.monitor=" + monitors[0] + "," + monitors[0] + "/," + monitors[0]}, []string{"are the same NATS server, nats-1", "list the monitoring address of each server once"}},
		"the port of clients as a monitor":  {[]string{"cluster", "init", at, "--set", "cluster.monitor=" + strings.Replace(servers.URLs()[0], "nats:", "http:", 1)}, []string{"monitoring port", "not the one for clients"}},
		"no server":                         {[]string{"cluster", "status", "--cluster=nats://user:secret@127.0.0.1:1"}, []string{"cluster.url", "start the NATS servers"}},
		"a cluster that was not made":       {[]string{"serve", at, "--set", all, "--node-name=a", "--data", filepath.Join(dir, "a"), "--listen=127.0.0.1:0"}, []string{"there is no cluster named \"parley\"", "parley cluster init"}},
		"a bad name":                        {[]string{"serve", at, "--set", all, "--node-name=a b"}, []string{"cluster.node", "a-z"}},
		"a bad address":                     {[]string{"serve", "--cluster=http://a"}, []string{"cluster.url", "nats://10.0.0.1:4222"}},
		"no cluster":                        {[]string{"cluster", "status"}, []string{"--cluster nats://"}},
		"more replicas than servers":        {[]string{"cluster", "init", at, "--set", all, "--replicas=5"}, []string{"3 NATS servers answer, 5 are needed for 5 replicas"}},
		"reseed without a word":             {[]string{"cluster", "reseed", at}, []string{"--yes"}},
		"reseed without copies":             {[]string{"cluster", "reseed", at, "--set", all, "--yes", "--data", dir}, []string{"no copies of a cluster"}},
	} {
		code, out, errs := call(t, nil, c.args...)
		for _, want := range c.want {
			if code == exitFine || !strings.Contains(errs, want) {
				t.Errorf("%s: exit %d without %q: %s%s", what, code, want, out, errs)
			}
		}
		if strings.Contains(errs, "secret") {
			t.Errorf("%s: a password is told: %s", what, errs)
		}
	}

	// Made once, with the first key, and not twice.
	made := []string{"cluster", "init", at, "--set", all, "--shards=1", "--operator-key"}
	code, out, errs := call(t, nil, made...)
	if code != exitFine || !strings.Contains(out, "operator key, shown once: parley_") {
		t.Fatalf("init: exit %d: %s%s", code, out, errs)
	}
	if code, _, errs := call(t, nil, made...); code == exitFine || !strings.Contains(errs, "was made before") {
		t.Errorf("init again: exit %d: %s", code, errs)
	}
	// A stream that was changed so that it may lose messages.
	nc, err := nats.Connect(servers.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	stream, err := js.Stream(t.Context(), "PARLEY_parley_0")
	if err != nil {
		t.Fatal(err)
	}
	changed := stream.CachedInfo().Config
	changed.MaxAge = time.Hour
	if _, err := js.UpdateStream(t.Context(), changed); err != nil {
		t.Fatal(err)
	}
	serve := []string{"serve", at, "--set", all, "--node-name=a", "--data", filepath.Join(dir, "a"), "--listen=127.0.0.1:0"}
	if code, _, errs := call(t, nil, serve...); code == exitFine || !strings.Contains(errs, "PARLEY_parley_0 has max_age 1h0m0s; set it to 0") {
		t.Errorf("serve: exit %d: %s", code, errs)
	}
	if _, err := js.UpdateStream(t.Context(), stream.CachedInfo().Config); err != nil {
		t.Fatal(err)
	}
	if code, _, errs := call(t, nil, "cluster", "move", "nobody", at); code == exitFine || !strings.Contains(errs, "no node named nobody") {
		t.Errorf("move to nobody: exit %d: %s", code, errs)
	}
}
