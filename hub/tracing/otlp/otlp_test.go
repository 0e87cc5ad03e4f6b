package otlp_test

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/otel/trace"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	proto "go.opentelemetry.io/proto/otlp/trace/v1"
	protobuf "google.golang.org/protobuf/proto"

	"github.com/parley-hub/parley/adapter"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/hub"
	"github.com/parley-hub/parley/hub/tracing/otlp"
	"github.com/parley-hub/parley/identity"
	"github.com/parley-hub/parley/journal/mem"
)

// receiver is a collector that stores what it receives, as the protocol's own
// types.
type receiver struct {
	*httptest.Server
	mu       sync.Mutex
	spans    []*proto.Span
	services []string
	headers  []http.Header
	paths    []string
}

func newReceiver(t *testing.T) *receiver {
	t.Helper()
	r := &receiver{}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		body, err := io.ReadAll(q.Body)
		if err != nil {
			t.Error(err)
		}
		var sent collector.ExportTraceServiceRequest
		if err := protobuf.Unmarshal(body, &sent); err != nil {
			t.Errorf("what was sent is not an export request: %v", err)
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		r.headers, r.paths = append(r.headers, q.Header), append(r.paths, q.URL.Path)
		for _, from := range sent.ResourceSpans {
			for _, about := range from.Resource.Attributes {
				if about.Key == "service.name" {
					r.services = append(r.services, about.Value.GetStringValue())
				}
			}
			for _, scope := range from.ScopeSpans {
				r.spans = append(r.spans, scope.Spans...)
			}
		}
		answer, err := protobuf.Marshal(&collector.ExportTraceServiceResponse{})
		if err != nil {
			t.Error(err)
		}
		w.Header().Set("Content-Type", "application/x-protobuf")
		_, _ = w.Write(answer)
	}))
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) named(name string) (found []*proto.Span) {
	for _, s := range r.spans {
		if s.Name == name {
			found = append(found, s)
		}
	}
	return found
}

func attribute(s *proto.Span, key string) string {
	for _, a := range s.Attributes {
		if a.Key == key {
			return a.Value.GetStringValue()
		}
	}
	return ""
}

func exporter(t *testing.T, o otlp.Options) *otlp.Exporter {
	t.Helper()
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Percent == 0 {
		o.Percent = 100
	}
	e, err := otlp.New(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// talk has two agents take a turn each in a consulting channel, and closes the hub.
func talk(t *testing.T, provider trace.TracerProvider, rounds int) (agents [2]string) {
	t.Helper()
	engine, err := mem.Open(mem.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer engine.Close()
	h, err := hub.Open(t.Context(), engine, hub.Options{Adapters: adapter.All(), Log: slog.New(slog.DiscardHandler), Tracing: provider})
	if err != nil {
		t.Fatal(err)
	}
	for i, name := range []string{"alice", "bob"} {
		p, err := h.Register(t.Context(), hub.Registration{Passport: &identity.Passport{
			Name: name, Kind: identity.Agent, Auth: identity.Auth{Scheme: identity.SchemeNone},
		}})
		if err != nil {
			t.Fatal(err)
		}
		agents[i] = p.ID()
	}
	inbox := hub.NewInbox(0)
	if err := h.Bind(agents[1], inbox); err != nil {
		t.Fatal(err)
	}
	var acks sync.WaitGroup
	reading, stop := context.WithCancel(t.Context())
	defer func() { stop(); acks.Wait(); h.Close() }()
	acks.Go(func() {
		for {
			n, err := inbox.Next(reading)
			if err != nil {
				return
			}
			if n.Envelope.Type == envelope.TypeInvite {
				ack := &envelope.Envelope{Channel: n.Envelope.Channel, Sender: agents[1], Type: envelope.TypeInviteAck, Data: []byte(`{}`)}
				if _, err := h.Post(context.Background(), ack, nil); err != nil {
					t.Error(err)
				}
			}
		}
	})
	for range rounds {
		opened, err := h.Open(t.Context(), hub.Opening{Creator: agents[0], Type: "consulting", Participants: agents[1:]})
		if err != nil {
			t.Fatal(err)
		}
		for _, from := range agents {
			e := &envelope.Envelope{Channel: opened.ID, Sender: from, Type: envelope.TypeText, Data: []byte(`{"text":"a secret of two"}`)}
			if _, err := h.Post(t.Context(), e, nil); err != nil {
				t.Fatal(err)
			}
		}
	}
	return agents
}

func TestSpansReachACollector(t *testing.T) {
	t.Parallel()
	r := newReceiver(t)
	file := filepath.Join(t.TempDir(), "headers")
	if err := os.WriteFile(file, []byte("# of the collector\nauthorization: Bearer s3cret\n\nx-team:red\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	e := exporter(t, otlp.Options{Endpoint: r.URL, Headers: file, Queue: 1000, Timeout: 10 * time.Second})
	agents := talk(t, e.Provider(), 1)
	e.Close(t.Context())
	if s := e.Stats(); s.Sent != int64(len(r.spans)) || s.Sent == 0 || s.Failed+s.Dropped+s.Waiting != 0 {
		t.Errorf("%+v, and %d spans arrived", s, len(r.spans))
	}
	if r.paths[0] != "/v1/traces" || r.headers[0].Get("Authorization") != "Bearer s3cret" || r.headers[0].Get("X-Team") != "red" || r.services[0] != "parley" {
		t.Errorf("came to %s with %v of %v", r.paths[0], r.headers[0], r.services)
	}
	said := r.named("network.envelope " + envelope.TypeText)
	if len(said) != 2 {
		t.Fatalf("%d spans of envelopes", len(said))
	}
	for _, phase := range []string{"hub.admission", "hub.fold", "hub.sync", "hub.delivery"} {
		spans := r.named(phase)
		if len(spans) != len(said) {
			t.Errorf("%d spans %s of %d envelopes", len(spans), phase, len(said))
			continue
		}
		for i, s := range spans {
			whole := said[i]
			if !bytes.Equal(s.ParentSpanId, whole.SpanId) || !bytes.Equal(s.TraceId, whole.TraceId) {
				t.Errorf("%s is not part of its envelope", phase)
			}
			if s.StartTimeUnixNano < whole.StartTimeUnixNano || s.EndTimeUnixNano > whole.EndTimeUnixNano || s.EndTimeUnixNano < s.StartTimeUnixNano {
				t.Errorf("%s lasts from %d to %d, its envelope from %d to %d", phase, s.StartTimeUnixNano, s.EndTimeUnixNano, whole.StartTimeUnixNano, whole.EndTimeUnixNano)
			}
		}
	}
	turns := r.named("network.turn")
	if len(turns) != 2 || attribute(turns[0], "ag2.agent.id") != agents[0] || attribute(turns[1], "ag2.agent.id") != agents[1] {
		t.Fatalf("turns %v", turns)
	}
	if got, want := attribute(turns[1], "ag2.network.causation_id"), attribute(said[0], "ag2.network.envelope_id"); got != want {
		t.Errorf("the second turn answers %q, not %q", got, want)
	}
	if !bytes.Equal(turns[1].Links[0].SpanId, said[1].SpanId) {
		t.Error("the second turn does not link the envelope that took it")
	}
	if len(r.named("network.channel consulting")) != 1 {
		t.Error("no span of the channel")
	}
	if strings.Contains(string(mustMarshal(t, r.spans)), "secret of two") {
		t.Error("spans tell what was said")
	}
}

func mustMarshal(t *testing.T, spans []*proto.Span) (all []byte) {
	t.Helper()
	for _, s := range spans {
		data, err := protobuf.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, data...)
	}
	return all
}

// A collector that accepts connections and never answers blocks nothing: the hub
// posts, drops spans that do not fit the queue, and ends.
func TestACollectorThatHangs(t *testing.T) {
	t.Parallel()
	hang, stop := context.WithCancel(t.Context())
	dead := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-hang.Done() }))
	t.Cleanup(dead.Close)
	t.Cleanup(stop)
	lines := make(lineWriter, 16)
	const queue = 16
	e := exporter(t, otlp.Options{Endpoint: dead.URL, Queue: queue, Timeout: 200 * time.Millisecond, Log: slog.New(slog.NewTextHandler(lines, nil))})
	talk(t, e.Provider(), 20)
	if s := e.Stats(); s.Waiting > queue {
		t.Errorf("%d spans wait, of %d at most", s.Waiting, queue)
	}
	ended, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	e.Close(ended)
	s := e.Stats()
	if s.Sent != 0 || s.Dropped == 0 {
		t.Errorf("%+v", s)
	}
	select { // the failure is counted a little later
	case line := <-lines:
		if !strings.Contains(line, "spans not sent") {
			t.Errorf("the log says %q", line)
		}
	case <-time.After(10 * time.Second):
		t.Error("nothing is logged")
	}
}

// lineWriter sends each written line to the receiver of the channel.
type lineWriter chan string

func (w lineWriter) Write(p []byte) (int, error) {
	select {
	case w <- string(p):
	default:
	}
	return len(p), nil
}

func TestSampling(t *testing.T) {
	t.Parallel()
	r := newReceiver(t)
	e := exporter(t, otlp.Options{Endpoint: r.URL + "/other/path", Percent: 1, Queue: 1 << 16, Timeout: 10 * time.Second})
	talk(t, e.Provider(), 500)
	e.Close(t.Context())
	// Of 1,000 envelopes 10 are expected; more than 100 is not a matter of chance.
	said := r.named("network.envelope " + envelope.TypeText)
	if len(said) > 100 {
		t.Errorf("%d of 1000 envelopes were recorded", len(said))
	}
	if len(r.named("hub.sync")) != len(said) {
		t.Errorf("%d phases of %d envelopes", len(r.named("hub.sync")), len(said))
	}
	if len(r.paths) > 0 && r.paths[0] != "/other/path" {
		t.Errorf("sent to %s", r.paths[0])
	}
}

func TestHeadersThatAreRefused(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"authorization Bearer s3cret":      ":1 is not a header",
		"a: b\nau thorization: s3cret":     ":2 is not a header",
		"authorization: s3cret\x00":        ":1 is not a header",
		strings.Repeat("x: s3cret\n", 1e4): "at most 65536",
	} {
		file := filepath.Join(t.TempDir(), "headers")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := otlp.New(t.Context(), otlp.Options{Endpoint: "http://127.0.0.1:1", Headers: file, Queue: 1, Timeout: time.Second, Percent: 100})
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%.30q: %v", text, err)
		}
	}
	if _, err := otlp.New(t.Context(), otlp.Options{Endpoint: "http://127.0.0.1:1", Headers: "no-such", Queue: 1}); err == nil || !strings.Contains(err.Error(), "tracing.headers: ") {
		t.Errorf("%v", err)
	}
}
