package agh_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/parley-hub/parley/adapter"
	"github.com/parley-hub/parley/adapter/direct"
	"github.com/parley-hub/parley/adapter/room"
	"github.com/parley-hub/parley/adapter/thread"
	"github.com/parley-hub/parley/conformance/spec"
	"github.com/parley-hub/parley/dialect/agh"
	"github.com/parley-hub/parley/hub"
	"github.com/parley-hub/parley/internal/gate"
	"github.com/parley-hub/parley/journal"
	"github.com/parley-hub/parley/journal/disk"
	"github.com/parley-hub/parley/journal/mem"
)

// rig is a runtime on a real hub. Requests are served within the process, so that a
// test's time can be the bubble's.
type rig struct {
	*spec.T
	cfg    agh.Config
	store  *mem.Store
	dir    string
	engine journal.Engine
	cost   *costs // counts reads from the engine; nil: not counted
	hub    *hub.Hub
	server *agh.Server
	shut   error        // if set, nothing is received
	logs   slog.Handler // nil: nothing is logged

	tracing trace.TracerProvider
}

// holds runs fn against a runtime on an empty store, in a bubble of time, as a
// check of a statement.
func holds(t *testing.T, statement string, cfg agh.Config, fn func(r *rig)) {
	t.Helper()
	spec.Check(t, statement, func(t *spec.T) {
		t.Parallel()
		outer := t.T
		synctest.Test(outer, func(inner *testing.T) {
			t.T = inner
			defer func() { t.T = outer }()
			r := &rig{T: t, cfg: cfg, store: mem.NewStore()}
			r.start()
			defer r.stop()
			fn(r)
		})
	})
}

// runs does the same as holds, without a statement.
func runs(t *testing.T, name string, cfg agh.Config, fn func(r *rig)) {
	t.Helper()
	t.Run(name, func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			r := &rig{T: &spec.T{T: t}, cfg: cfg, store: mem.NewStore()}
			r.start()
			defer r.stop()
			fn(r)
		})
	})
}

func (r *rig) start() {
	r.Helper()
	var err error
	if r.dir != "" {
		r.engine, err = disk.Open(r.dir, disk.Options{})
	} else {
		r.engine, err = mem.Open(mem.Options{Store: r.store})
	}
	r.NoError(err)
	if r.cost != nil {
		r.cost.Engine = r.engine
		r.engine = r.cost
	}
	log := slog.New(slog.DiscardHandler)
	if r.logs != nil {
		log = slog.New(r.logs)
	}
	r.hub, err = hub.Open(context.Background(), r.engine, hub.Options{
		Adapters: append(adapter.All(), room.New(room.Options{}), thread.New(thread.Options{}), direct.New(direct.Options{})), Log: log,
		Limits: hub.Limits{DocumentBytes: 1 << 20}, Tracing: r.tracing,
	})
	r.NoError(err)
	cfg := r.cfg
	cfg.Hub, cfg.Log = r.hub, log
	if cfg.Who == nil {
		cfg.Who = who
	}
	r.server, err = agh.New(cfg)
	r.NoError(err)
	r.NoError(r.server.Start(gate.With(context.Background(), func(context.Context) error { return r.shut })))
}

func (r *rig) stop() {
	r.NoError(r.server.Drain(context.Background()))
	r.NoError(r.server.Close())
	r.hub.Close()
	_ = r.engine.Close()
}

// restart closes everything and opens it again on the same store.
func (r *rig) restart() {
	r.Helper()
	r.stop()
	r.start()
}

// who returns the role of a request: "operator", "reader", "agent:NAME" or
// "nobody"; the default is the operator.
func who(req *http.Request) agh.Who {
	switch as := req.Header.Get("X-As"); {
	case as == "" || as == "operator":
		return agh.Who{Role: agh.Operator}
	case as == "reader":
		return agh.Who{Role: agh.Reader}
	case strings.HasPrefix(as, "agent:"):
		return agh.Who{Role: agh.Agent, Agent: as[len("agent:"):]}
	}
	return agh.Who{}
}

const ws = "/agh/workspaces/ws_harbor/network"

// obj is a JSON object.
type obj = map[string]any

// serve sends a request under ws, or under another path that begins with /agh.
func (r *rig) serve(as, method, path string, body any) *httptest.ResponseRecorder {
	r.Helper()
	if !strings.HasPrefix(path, "/agh") {
		path = ws + path
	}
	var text string
	switch b := body.(type) {
	case nil:
	case string:
		text = b
	default:
		data, err := json.Marshal(b)
		r.NoError(err)
		text = string(data)
	}
	req := httptest.NewRequest(method, path, strings.NewReader(text))
	req.Header.Set("X-As", as)
	w := httptest.NewRecorder()
	r.server.Mount().Routes[0].Handler.ServeHTTP(w, req)
	return w
}

// ask sends a request whose response must have a status, and returns the JSON
// object.
func (r *rig) ask(status int, method, path string, body any) obj {
	r.Helper()
	return r.askAs("operator", status, method, path, body)
}

func (r *rig) askAs(as string, status int, method, path string, body any) obj {
	r.Helper()
	w := r.serve(as, method, path, body)
	if w.Code != status {
		r.Fatalf("%s %s as %s: %d %s; want %d", method, path, as, w.Code, w.Body, status)
	}
	answer := obj{}
	if w.Body.Len() > 0 {
		r.NoError(json.Unmarshal(w.Body.Bytes(), &answer))
	}
	return answer
}

func (r *rig) get(path string) obj {
	r.Helper()
	return r.ask(http.StatusOK, "GET", path, nil)
}

// host is a hosted peer.
type host struct {
	r                      *rig
	channel, session, peer string
}

// join joins an agent to a channel of ws under a peer id.
func (r *rig) join(channel, agent, peer string) *host {
	r.Helper()
	a := r.ask(http.StatusCreated, "POST", "/channels/"+channel+"/peers", obj{"agent": agent, "peer_id": peer})
	return &host{r, channel, a["session_id"].(string), a["peer_id"].(string)}
}

// send sends a say into thread_tide, with other members where given.
func (h *host) send(status int, members obj) obj {
	h.r.Helper()
	body := obj{"session_id": h.session, "channel": h.channel, "kind": "say", "surface": "thread", "thread_id": "thread_tide", "body": obj{"text": "hello"}}
	for k, v := range members {
		if v == nil {
			delete(body, k)
		} else {
			body[k] = v
		}
	}
	return h.r.ask(status, "POST", "/send", body)
}

// say sends a text, and returns its id.
func (h *host) say(text string, members obj) string {
	h.r.Helper()
	all := obj{"body": obj{"text": text}}
	for k, v := range members {
		all[k] = v
	}
	return h.send(http.StatusOK, all)["message"].(obj)["id"].(string)
}

// trace and receipt send messages about work_1.
func (h *host) trace(status int, to, state string, members obj) obj {
	h.r.Helper()
	return h.about(status, "trace", to, obj{"state": state}, members)
}

func (h *host) receipt(status int, to string, body, members obj) obj {
	h.r.Helper()
	return h.about(status, "receipt", to, body, members)
}

func (h *host) about(status int, kind, to string, body, members obj) obj {
	h.r.Helper()
	all := obj{"kind": kind, "work_id": "work_1", "body": body}
	if to != "" {
		all["to"] = to
	}
	for k, v := range members {
		all[k] = v
	}
	return h.send(status, all)
}

// inbox lists the ids of the messages that wait for the peer.
func (h *host) inbox() []string {
	h.r.Helper()
	ids := []string{}
	for _, m := range h.waiting() {
		ids = append(ids, m["id"].(string))
	}
	return ids
}

func (h *host) waiting() []obj {
	h.r.Helper()
	return list(h.r.get("/inbox?session_id="+h.session), "messages")
}

// done finishes a message.
func (h *host) done(id string) {
	h.r.Helper()
	h.r.ask(http.StatusNoContent, "POST", "/inbox/"+id+"/done?session_id="+h.session, nil)
}

func list(o obj, name string) []obj {
	all := []obj{}
	for _, item := range o[name].([]any) {
		all = append(all, item.(obj))
	}
	return all
}

// each returns one member of each object.
func each(all []obj, name string) []string {
	values := []string{}
	for _, o := range all {
		values = append(values, fmt.Sprint(o[name]))
	}
	return values
}

// work returns the state of a piece of work.
func (r *rig) work(id string) string {
	r.Helper()
	return r.get("/work/" + id)["work"].(obj)["state"].(string)
}

// pass lets time pass.
func pass(d time.Duration) {
	time.Sleep(d) //nolint:forbidigo // the bubble's time
	synctest.Wait()
}
