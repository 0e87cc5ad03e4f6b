package extending

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/hub"
	"github.com/parley-hub/parley/identity"
	"github.com/parley-hub/parley/journal/mem"
	"github.com/parley-hub/parley/server"
	"github.com/parley-hub/parley/server/access"
	"github.com/parley-hub/parley/server/body"
	"github.com/parley-hub/parley/server/config"
	"github.com/parley-hub/parley/server/dialect"
	"github.com/parley-hub/parley/server/problem"
)

// plain is the smallest dialect: POST /plain/{channel}?as=AGENT {"text":…} says
// a text.
type plain struct {
	hub  *hub.Hub
	said atomic.Int64
}

func (p *plain) Name() string { return "plain" }

func (p *plain) Mount() dialect.Mount {
	return dialect.Mount{Routes: []dialect.Route{{
		Pattern: "POST /plain/{channel}", Handler: http.HandlerFunc(p.say),
		Body:  func(*http.Request) dialect.Body { return dialect.Body{Bytes: 1000} },
		Token: dialect.QueryToken,
	}}}
}

func (p *plain) say(w http.ResponseWriter, r *http.Request) {
	var said struct {
		Text string `json:"text"`
	}
	if err := body.Read(r.Body, &said); err != nil {
		problem.Write(w, err)
		return
	}
	data, err := json.Marshal(said)
	if err != nil {
		problem.Write(w, err)
		return
	}
	// The server knows who asks; the hub decides what they may do.
	who := access.From(r.Context())
	by := &hub.Caller{Key: who.Key, Anyone: who.Has(access.Operator)}
	id, err := p.hub.Post(r.Context(), &envelope.Envelope{
		Channel: r.PathValue("channel"), Sender: r.URL.Query().Get("as"), Type: envelope.TypeText, Data: data,
	}, by)
	if err != nil {
		problem.Write(w, err)
		return
	}
	p.said.Add(1)
	_, _ = io.WriteString(w, id)
}

func (p *plain) Start(context.Context) error { return nil }
func (p *plain) Drain(context.Context) error { return nil } // requests in flight end without help
func (p *plain) Close() error                { return nil }
func (p *plain) Ready(context.Context) error { return nil }

func (p *plain) Banner(base string) dialect.Banner {
	return dialect.Banner{Label: "plain", URL: base + "/plain"}
}

var saidDesc = prometheus.NewDesc("parley_plain_said_total", "Texts said.", nil, nil)

func (p *plain) Describe(to chan<- *prometheus.Desc) { to <- saidDesc }
func (p *plain) Collect(to chan<- prometheus.Metric) {
	to <- prometheus.MustNewConstMetric(saidDesc, prometheus.CounterValue, float64(p.said.Load()))
}

func TestDialect(t *testing.T) {
	t.Parallel()
	engine, err := mem.Open(mem.Options{Store: mem.NewStore()})
	if err != nil {
		t.Fatal(err)
	}
	quiet := slog.New(slog.DiscardHandler)
	h, err := hub.Open(t.Context(), &counting{Engine: engine}, hub.Options{Adapters: []channel.Adapter{board{}}, Log: quiet})
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, name := range []string{"alice", "bob"} {
		p, err := h.Register(t.Context(), hub.Registration{
			Passport: &identity.Passport{Name: name, Auth: identity.Auth{Scheme: identity.SchemeNone}},
		})
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, p.ID())
	}
	opened, err := h.Open(t.Context(), hub.Opening{Creator: ids[0], Type: "board", Participants: ids})
	if err != nil {
		t.Fatal(err)
	}
	keys := access.NewKeys()
	cfg := config.Core.Default()
	cfg.HTTP.Listen = "127.0.0.1:0"
	s, err := server.New(t.Context(), cfg, server.Deps{Keys: keys, Log: quiet, Dialects: []server.Dialect{&plain{hub: h}}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	for text, want := range map[string]int{"hello": http.StatusOK, strings.Repeat("x", 1001): http.StatusRequestEntityTooLarge} {
		said := strings.NewReader(`{"text":"` + text + `"}`)
		response, err := http.Post(s.URL()+"/plain/"+opened.ID+"?as="+ids[0], "application/json", said)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		if response.StatusCode != want {
			t.Errorf("%d bytes: %d, want %d", len(text), response.StatusCode, want)
		}
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	h.Close()
	if err := engine.Close(); err != nil {
		t.Error(err)
	}
}
