package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"github.com/parley-hub/parley/agent"
	"github.com/parley-hub/parley/client"
	"github.com/parley-hub/parley/identity"
	"github.com/parley-hub/parley/internal/scripted"
	"github.com/parley-hub/parley/journal"
	"github.com/parley-hub/parley/journal/mem"
	"github.com/parley-hub/parley/server/access"
	"github.com/parley-hub/parley/server/config"
	"github.com/parley-hub/parley/task"
)

// runningHub starts a hub in this process, as serve does, and says where.
func runningHub(t *testing.T, edit func(*config.Config)) started {
	t.Helper()
	return runningHubOn(t, mem.NewStore(), edit)
}

// runningHubOn is runningHub on a store that may hold something.
func runningHubOn(t *testing.T, store *mem.Store, edit func(*config.Config)) started {
	t.Helper()
	engine, err := mem.Open(mem.Options{Store: store})
	if err != nil {
		t.Fatal(err)
	}
	said, screen := io.Pipe()
	a := &app{streams: streams{nil, screen, &bytes.Buffer{}}, output: "json"}
	a.openJournal = func(config.Data, *slog.Logger) (journal.Engine, error) { return engine, nil }
	cfg := allSettings.Default()
	cfg.Data.Dir, cfg.HTTP.Listen = t.TempDir(), "127.0.0.1:0"
	if edit != nil {
		edit(&cfg)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- a.runHub(ctx, cfg, slog.New(slog.DiscardHandler)) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	var at started
	if err := json.NewDecoder(said).Decode(&at); err != nil {
		t.Fatal(err)
	}
	return at
}

// join registers someone who accepts every invitation and says nothing.
func joinAs(t *testing.T, at started, name string) *client.Identity {
	t.Helper()
	link, err := client.Dial(t.Context(), at.Agents, client.Options{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	me, err := link.Attach(t.Context(), client.Registration{Passport: identity.Passport{Name: name, Auth: identity.Auth{Scheme: identity.SchemeNone}}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	over := make(chan struct{})
	go func() {
		defer close(over)
		_ = (&scripted.Participant{Link: me, Lines: scripted.Script(nil)}).Run(ctx)
	}()
	t.Cleanup(func() {
		stop()
		link.Close()
		<-over
	})
	return me
}

// post sends JSON to a hub and returns the status and the answer.
func post(t *testing.T, url, body string) (int, string) {
	t.Helper()
	return ask(t, http.MethodPost, url, body)
}

func ask(t *testing.T, method, url, body string) (int, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	raw, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(raw)
}

// What AG2's clients cannot take is seen from our own surfaces: a log that
// nears its end is warned of, and an envelope that is too large refused.
func TestOwnSurfacesKnowAG2sLimits(t *testing.T) {
	t.Parallel()
	at := runningHub(t, nil)
	alice := joinAs(t, at, "alice")
	bob := joinAs(t, at, "bob")
	m, err := alice.OpenChannel(t.Context(), agent.Opening{Type: "conversation", Participants: []string{bob.ID()}})
	if err != nil {
		t.Fatal(err)
	}
	show := func() string {
		t.Helper()
		code, out, errs := call(t, []string{"PARLEY_HUB=" + at.URL}, "channels", "show", m.ID)
		if code != 0 {
			t.Fatal(errs)
		}
		return out
	}
	events := at.URL + "/v1/channels/" + m.ID + "/events"
	note := func(size int) (int, string) {
		return post(t, events, fmt.Sprintf(`{"sender":"alice","event_type":"app.note","event_data":{"n":"%s"}}`, strings.Repeat("x", size)))
	}
	if status, answer := note(600_000); status != http.StatusCreated {
		t.Fatalf("%d %s", status, answer)
	}
	if got := show(); strings.Contains(got, "warning") {
		t.Errorf("below 70 %% there is a warning: %s", got)
	}
	if status, answer := note(200_000); status != http.StatusCreated {
		t.Fatalf("%d %s", status, answer)
	}
	if got := show(); !strings.Contains(got, "warning") || !strings.Contains(got, "that AG2 clients can read at once") {
		t.Errorf("above 70 %% there is no warning: %s", got)
	}
	before := show()
	status, answer := note(1<<20 - 300)
	if status != http.StatusRequestEntityTooLarge || !strings.Contains(answer, `"code":"too_large"`) || !strings.Contains(answer, "bytes shorter") {
		t.Errorf("what fits no frame: %d %s", status, answer)
	}
	status, answer = post(t, at.URL+"/v1/channels", fmt.Sprintf(
		`{"creator":"alice","type":"conversation","participants":["bob"],"knobs":{"x":"%s"}}`, strings.Repeat("x", 1<<20-1000)))
	if status != http.StatusRequestEntityTooLarge || !strings.Contains(answer, "make knobs") {
		t.Errorf("an opening that fits no frame: %d %s", status, answer)
	}
	if after := show(); after != before {
		t.Errorf("what was refused left a trace:\n%s\n%s", before, after)
	}
}

// What the hub refuses is counted by code where scrapers look.
func TestRefusalsAreCounted(t *testing.T) {
	t.Parallel()
	at := runningHub(t, nil)
	alice := joinAs(t, at, "alice")
	bob := joinAs(t, at, "bob")
	m, err := alice.OpenChannel(t.Context(), agent.Opening{Type: "discussion", Participants: []string{bob.ID()}})
	if err != nil {
		t.Fatal(err)
	}
	if status, answer := post(t, at.URL+"/v1/channels/"+m.ID+"/events", `{"sender":"bob","text":"out of turn"}`); status != http.StatusConflict {
		t.Fatalf("%d %s", status, answer)
	}
	_, metrics := ask(t, http.MethodGet, at.URL+"/metrics", "")
	for _, want := range []string{`parley_posts_refused_total{code="protocol_error"} 1`, "parley_channels_loaded 1", "parley_posts_in_flight 0", "parley_ag2_connections 2"} {
		if !strings.Contains(metrics, want+"\n") {
			t.Errorf("no %s among\n%s", want, metrics)
		}
	}
}

// Every limit that can be configured reaches the hub.
func TestLimitsReachTheHub(t *testing.T) {
	t.Parallel()
	cfg := allSettings.Default()
	keys := access.NewKeys()
	limits := reflect.ValueOf(hubOptions(cfg, keys, nil).Limits)
	for i := range limits.NumField() {
		if limits.Field(i).IsZero() {
			t.Errorf("limits.%s is not configurable", limits.Type().Field(i).Name)
		}
	}
	at := runningHub(t, func(cfg *config.Config) { cfg.Limits.OpenTasks = 1 })
	alice := joinAs(t, at, "alice")
	bob := joinAs(t, at, "bob")
	m, err := alice.OpenChannel(t.Context(), agent.Opening{Type: "conversation", Participants: []string{bob.ID()}})
	if err != nil {
		t.Fatal(err)
	}
	observe := func(id string) error {
		return alice.ObserveTask(t.Context(), &task.Task{ID: id, Owner: alice.ID(), Channel: m.ID, State: "running"})
	}
	if err := observe("1"); err != nil {
		t.Fatal(err)
	}
	if err := observe("2"); err == nil || !strings.Contains(err.Error(), "limits.open_tasks") {
		t.Errorf("one more got %v", err)
	}
}
