package jetstream_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	api "github.com/nats-io/nats.go/jetstream"
	"github.com/parley-hub/parley/journal/cluster/jetstream"
	"github.com/parley-hub/parley/journal/cluster/port"
)

// alone starts one server with accounts and a monitoring page.
func alone(t *testing.T, sync string) *server.Server {
	t.Helper()
	dir := t.TempDir()
	conf := filepath.Join(dir, "nats.conf")
	text := fmt.Sprintf(`
listen: "127.0.0.1:-1"
http: "127.0.0.1:-1"
jetstream { store_dir: %q, sync_interval: %s }
accounts {
  SYS { users [ { user: sys, password: sys } ] }
  APP { jetstream: enabled, users [ { user: app, password: app } ] }
}
system_account: SYS
`, dir, sync)
	if err := os.WriteFile(conf, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	opts, err := server.ProcessConfigFile(conf)
	if err != nil {
		t.Fatal(err)
	}
	opts.NoLog, opts.NoSigs = true, true
	s, err := server.NewServer(opts)
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() {
		s.Shutdown()
		s.WaitForShutdown()
	})
	if !s.ReadyForConnections(time.Minute) {
		t.Fatal("the server does not start")
	}
	return s
}

func connect(t *testing.T, s *server.Server) *jetstream.Log {
	t.Helper()
	log, err := jetstream.Connect(jetstream.Options{URL: s.ClientURL(), Cluster: "test", NATS: []nats.Option{nats.UserInfo("app", "app")}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(log.Close)
	return log
}

// TestCheck: each refusal names the setting and its right value.
func TestCheck(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		sync string
		want string // "": accepted
	}{{"always", ""}, {`"2m"`, "sync_interval: always"}} {
		s := alone(t, c.sync)
		log := connect(t, s)
		system, err := nats.Connect(s.ClientURL(), nats.UserInfo("sys", "sys"))
		if err != nil {
			t.Fatal(err)
		}
		defer system.Close()
		monitor := []string{"http://" + s.MonitorAddr().String()}
		for name, r := range map[string]jetstream.Requirements{
			"system":  {Replicas: 1, System: system},
			"monitor": {Replicas: 1, Monitor: monitor},
		} {
			warnings, err := log.Check(t.Context(), r)
			if c.want == "" && (err != nil || len(warnings) > 0) {
				t.Errorf("%s, sync %s: %v, %v", name, c.sync, warnings, err)
			}
			if c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("%s, sync %s: %v", name, c.sync, err)
			}
			r.Replicas = 3
			if _, err := log.Check(t.Context(), r); err == nil || !strings.Contains(err.Error(), "3 replicas") {
				t.Errorf("%s: one server for three replicas: %v", name, err)
			}
		}
		if _, err := log.Check(t.Context(), jetstream.Requirements{Replicas: 1}); err == nil || !strings.Contains(err.Error(), "cluster.monitor") {
			t.Errorf("without a way to ask: %v", err)
		}
		warnings, err := log.Check(t.Context(), jetstream.Requirements{Replicas: 1, AssumeSync: true})
		if err != nil || len(warnings) != 1 || !strings.Contains(warnings[0], "cluster.assume_sync") {
			t.Errorf("assumed: %v, %v", warnings, err)
		}
	}
}

// pagesOf serves the monitoring pages of a server, changed by change.
func pagesOf(t *testing.T, s *server.Server, change func(page map[string]any) error) (address string) {
	t.Helper()
	pages := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: s.MonitorAddr().String()})
	pages.ModifyResponse = func(r *http.Response) error {
		var page map[string]any
		if err := json.NewDecoder(r.Body).Decode(&page); err != nil {
			return err
		}
		if err := change(page); err != nil {
			return err
		}
		text, err := json.Marshal(page)
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(text)), int64(len(text))
		r.Header.Set("Content-Length", strconv.Itoa(len(text)))
		return err
	}
	web := httptest.NewServer(pages)
	t.Cleanup(web.Close)
	return web.URL
}

// TestAnOldServer: an old server is refused, and the error has the version needed.
func TestAnOldServer(t *testing.T) {
	t.Parallel()
	s := alone(t, "always")
	old := pagesOf(t, s, func(page map[string]any) error {
		if page["version"] != nil {
			page["version"] = "2.11.4"
		}
		return nil
	})
	_, err := connect(t, s).Check(t.Context(), jetstream.Requirements{Replicas: 1, Monitor: []string{old}})
	if err == nil || !strings.Contains(err.Error(), s.Name()+" is of version 2.11.4; use "+jetstream.OldestServer) {
		t.Error(err)
	}
}

// TestClocksApart: a server whose clock differs causes a warning, and is not refused.
func TestClocksApart(t *testing.T) {
	t.Parallel()
	s := alone(t, "always")
	log := connect(t, s)
	for _, c := range []struct {
		by   time.Duration
		want string // "": no warning
	}{{0, ""}, {-3 * time.Second, "clock"}, {time.Minute, "clock"}} {
		shifted := pagesOf(t, s, func(page map[string]any) error {
			now, ok := page["now"].(string)
			if !ok {
				return nil
			}
			at, err := time.Parse(time.RFC3339Nano, now)
			page["now"] = at.Add(c.by)
			return err
		})
		warnings, err := log.Check(t.Context(), jetstream.Requirements{Replicas: 1, Monitor: []string{shifted}})
		if err != nil {
			t.Fatal(err)
		}
		if c.want == "" && len(warnings) > 0 || c.want != "" && (len(warnings) != 1 || !strings.Contains(warnings[0], c.want) || !strings.Contains(warnings[0], s.Name())) {
			t.Errorf("%v apart: %v", c.by, warnings)
		}
	}
}

// TestReplace: all streams are replaced by empty ones in a later epoch; missing ones
// are created.
func TestReplace(t *testing.T) {
	t.Parallel()
	log := connect(t, alone(t, "always"))
	ctx := t.Context()
	if err := log.Create(ctx, 1, 1, 1); err != nil { // Replace makes two shards
		t.Fatal(err)
	}
	before, err := log.State(ctx, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := log.Append(ctx, 0, 0, []byte("gone")); err != nil {
		t.Fatal(err)
	}
	if err := log.Replace(ctx, 2, 1, 5); err != nil {
		t.Fatal(err)
	}
	for shard := range 2 {
		state, err := log.State(ctx, shard)
		if err != nil || state.Epoch != 5 || state.Shards != 2 || state.Last != 0 || state.ID == before.ID {
			t.Errorf("shard %d: %+v, %v", shard, state, err)
		}
		if messages, err := log.Read(ctx, shard, 1); err != nil || len(messages) != 0 {
			t.Errorf("shard %d has %v, %v", shard, messages, err)
		}
		if err := log.Append(ctx, shard, 0, []byte("new")); err != nil {
			t.Errorf("shard %d: %v", shard, err)
		}
	}
}

func TestStreams(t *testing.T) {
	t.Parallel()
	s := alone(t, "always")
	log := connect(t, s)
	ctx := t.Context()
	if _, err := log.State(ctx, 0); !errors.Is(err, port.ErrNoLog) {
		t.Fatalf("before it is made: %v", err)
	}
	if err := log.Create(ctx, 2, 1, 7); err != nil {
		t.Fatal(err)
	}
	if err := log.Create(ctx, 2, 1, 7); err == nil {
		t.Fatal("a cluster was made twice")
	}
	other, err := jetstream.Connect(jetstream.Options{URL: s.ClientURL(), Cluster: "other", NATS: []nats.Option{nats.UserInfo("app", "app")}})
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	nc, err := nats.Connect(s.ClientURL(), nats.UserInfo("app", "app"))
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	if _, err := nc.Request("$JS.API.STREAM.CREATE.PARLEY_other_1", []byte(`{"name":"PARLEY_other_1","storage":"file"}`), time.Minute); err != nil {
		t.Fatal(err)
	}
	if err := other.Create(ctx, 3, 1, 1); err == nil || !strings.Contains(err.Error(), "PARLEY_other_1 exists already") {
		t.Errorf("one of three streams is there: %v", err)
	}
	if _, err := other.State(ctx, 0); !errors.Is(err, port.ErrNoLog) {
		t.Errorf("half of a cluster was made: %v", err)
	}
	state, err := log.State(ctx, 1)
	if err != nil || state.Epoch != 7 || state.Shards != 2 || state.Last != 0 || state.ID == [16]byte{} {
		t.Fatalf("%+v, %v", state, err)
	}
	pushed := make(chan port.Message, 10)
	stop, err := log.Tail(1, func(m port.Message) { pushed <- m })
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	for i := range uint64(3) {
		if err := log.Append(ctx, 1, i, fmt.Append(nil, i)); err != nil {
			t.Fatal(err)
		}
		if m := <-pushed; m.Seq != i+1 || string(m.Data) != fmt.Sprint(i) {
			t.Fatalf("pushed %d %q", m.Seq, m.Data)
		}
	}
	for _, after := range []uint64{0, 2, 4} {
		if err := log.Append(ctx, 1, after, []byte("x")); !errors.Is(err, port.ErrRefused) {
			t.Errorf("after %d: %v", after, err)
		}
	}
	messages, err := log.Read(ctx, 1, 2)
	if err != nil || len(messages) != 2 || messages[0].Seq != 2 || string(messages[1].Data) != "2" {
		t.Fatalf("%v, %v", messages, err)
	}
	if messages, err := log.Read(ctx, 1, 4); err != nil || len(messages) != 0 {
		t.Fatalf("beyond the end: %v, %v", messages, err)
	}
	if err := log.Append(ctx, 0, 0, make([]byte, log.MaxBytes())); err != nil {
		t.Fatalf("the largest message: %v", err)
	}
}

// TestAChangedStream: a stream that was changed so that it may lose messages is
// not used.
func TestAChangedStream(t *testing.T) {
	t.Parallel()
	s := alone(t, "always")
	log := connect(t, s)
	if err := log.Create(t.Context(), 1, 1, 1); err != nil {
		t.Fatal(err)
	}
	nc, err := nats.Connect(s.ClientURL(), nats.UserInfo("app", "app"))
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	js, err := api.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	stream, err := js.Stream(ctx, "PARLEY_test_0")
	if err != nil {
		t.Fatal(err)
	}
	for setting, change := range map[string]func(*api.StreamConfig){
		"max_age":      func(c *api.StreamConfig) { c.MaxAge = time.Hour },
		"max_msgs":     func(c *api.StreamConfig) { c.MaxMsgs = 10 },
		"max_bytes":    func(c *api.StreamConfig) { c.MaxBytes = 1 << 20 },
		"discard":      func(c *api.StreamConfig) { c.Discard = api.DiscardOld },
		"allow_direct": func(c *api.StreamConfig) { c.AllowDirect = false },
		"republish":    func(c *api.StreamConfig) { c.RePublish = nil },
		"headers only": func(c *api.StreamConfig) { c.RePublish.HeadersOnly = true },
		"max_msg_size": func(c *api.StreamConfig) { c.MaxMsgSize = 1000 },
		"subjects":     func(c *api.StreamConfig) { c.Subjects = append(c.Subjects, "other") },
		"num_replicas": func(c *api.StreamConfig) { c.Metadata["parley-replicas"] = "3" }, // it has one
	} {
		c := stream.CachedInfo().Config
		c.Metadata = maps.Clone(c.Metadata)
		if c.RePublish != nil {
			c.RePublish = new(*c.RePublish)
		}
		change(&c)
		if _, err := js.UpdateStream(ctx, c); err != nil {
			t.Fatalf("%s: %v", setting, err)
		}
		if _, err := log.State(ctx, 0); !errors.Is(err, port.ErrUnfit) || !strings.Contains(err.Error(), setting) {
			t.Errorf("%s: %v", setting, err)
		}
	}
}

func TestNames(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"", "a.b", "A", "a b", "*", strings.Repeat("x", 33)} {
		if _, err := jetstream.Connect(jetstream.Options{URL: "nats://127.0.0.1:1", Cluster: name}); err == nil || !strings.Contains(err.Error(), "a-z") {
			t.Errorf("%q: %v", name, err)
		}
	}
}

func TestVersions(t *testing.T) {
	t.Parallel()
	for version, want := range map[string]bool{
		"2.15.2": false, "2.15.3": false, "2.16.0": false, "3.0.0": false, "v2.15.2": false, "2.15.3-beta.1": false,
		"2.15.1": true, "2.9.25": true, "1.4.1": true, "": true, "new": true,
	} {
		if got := jetstream.Older(version, jetstream.OldestServer); got != want {
			t.Errorf("%q is older: %v", version, got)
		}
	}
}

// TestATailThatCannotBegin: while no server answers, Tail returns an error, and leaves
// no subscription that would come back with the server.
func TestATailThatCannotBegin(t *testing.T) {
	t.Parallel()
	s := alone(t, "always")
	log := connect(t, s)
	before := log.Subscriptions()
	s.Shutdown()
	s.WaitForShutdown()
	if _, err := log.Tail(0, func(port.Message) {}); err == nil {
		t.Fatal("a tail began without a server")
	}
	if n := log.Subscriptions(); n != before {
		t.Errorf("%d subscriptions, before there were %d", n, before)
	}
}
