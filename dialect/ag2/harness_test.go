package ag2_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/gobwas/ws"
	"github.com/gobwas/ws/wsutil"

	"github.com/parley-hub/parley/adapter"
	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/dialect/ag2"
	"github.com/parley-hub/parley/hub"
	"github.com/parley-hub/parley/identity"
	"github.com/parley-hub/parley/journal"
	"github.com/parley-hub/parley/journal/disk"
	"github.com/parley-hub/parley/journal/mem"
)

// wait bounds how long a test waits for an expected event.
const wait = 20 * time.Second

// rig is a real hub behind a real server on a real socket.
type rig struct {
	t      testing.TB
	hub    *hub.Hub
	server *ag2.Server
	http   *httptest.Server
	store  *mem.Store
	engine *mem.Engine // nil on disk
	log    *logs

	journal journal.Engine
}

// options of a rig; the zero value is the default hub.
type options struct {
	hub    hub.Options
	config ag2.Config
	store  *mem.Store
	wrap   func(*hub.Hub) ag2.Hub
	disk   bool // a real journal in a folder
	// adapters are the adapters of other dialects.
	adapters []channel.Adapter
}

func newRig(t testing.TB, o options) *rig {
	t.Helper()
	r := &rig{t: t, store: o.store, log: &logs{}}
	if r.store == nil {
		r.store = mem.NewStore()
	}
	var err error
	var j journal.Engine
	if o.disk {
		j, err = disk.Open(t.TempDir(), disk.Options{})
	} else {
		r.engine, err = mem.Open(mem.Options{Store: r.store})
		j = r.engine
	}
	if err != nil {
		t.Fatal(err)
	}
	r.journal = j
	log := slog.New(slog.NewTextHandler(r.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	o.hub.Adapters, o.hub.Log = append(adapter.All(), o.adapters...), log
	if o.hub.Auth == nil {
		o.hub.Auth = identity.NewAuthRegistry(identity.None{}, identity.NewAPIKey(map[string]string{"quill": "tok-7", "keyed": "tok-8"}, nil))
	}
	if r.hub, err = hub.Open(t.Context(), j, o.hub); err != nil {
		t.Fatal(err)
	}
	o.config.Hub, o.config.Log = r.hub, log
	if o.wrap != nil {
		o.config.Hub = o.wrap(r.hub)
	}
	if r.server, err = ag2.New(o.config); err != nil {
		t.Fatal(err)
	}
	r.http = httptest.NewServer(r.server)
	t.Cleanup(r.stop)
	return r
}

func (r *rig) stop() {
	ctx, cancel := context.WithTimeout(context.Background(), wait)
	defer cancel()
	if err := r.server.Drain(ctx); err != nil {
		r.t.Errorf("the server did not close: %v", err)
	}
	r.http.Close()
	r.hub.Close()
	_ = r.journal.Close()
}

func (r *rig) address() string { return strings.TrimPrefix(r.http.URL, "http://") }

// peer is a client that uses nothing but frames.
type peer struct {
	t       testing.TB
	conn    net.Conn
	frames  chan []byte
	over    chan struct{} // closed when no more frames arrive
	err     error         // why it was closed
	notices []notice      // received while waiting for something else
	early   map[string]reply
	next    int
}

type notice struct {
	Envelope  map[string]any `json:"envelope"`
	Recipient string         `json:"recipient_id"`
}

func (r *rig) dial() *peer {
	r.t.Helper()
	conn, rest, _, err := ws.Dial(context.Background(), "ws://"+r.address()+"/any/path?x=1")
	if err != nil {
		r.t.Fatal(err)
	}
	p := &peer{t: r.t, conn: conn, frames: make(chan []byte, 1024), over: make(chan struct{})}
	var reader io.Reader = conn
	if rest != nil {
		reader = io.MultiReader(rest, conn)
	}
	go p.read(reader)
	r.t.Cleanup(p.hangUp)
	return p
}

func (p *peer) read(reader io.Reader) {
	defer close(p.over)
	for {
		data, op, err := wsutil.ReadServerData(struct {
			io.Reader
			io.Writer
		}{reader, p.conn})
		if err != nil {
			p.err = err
			return
		}
		if op == ws.OpText {
			p.frames <- data
		}
	}
}

func (p *peer) hangUp() { _ = p.conn.Close() }

func (p *peer) send(frame string) {
	p.t.Helper()
	if err := wsutil.WriteClientText(p.conn, []byte(frame)); err != nil {
		p.t.Fatal(err)
	}
}

// recv returns the next frame.
func (p *peer) recv() string {
	p.t.Helper()
	select {
	case f := <-p.frames:
		return string(f)
	case <-time.After(wait):
		p.t.Fatal("no frame came")
	case <-p.over:
		select {
		case f := <-p.frames:
			return string(f)
		default:
			p.t.Fatalf("no frame came: %v", p.err)
		}
	}
	return ""
}

// quiet checks that nothing unexpected has been sent: a ping is answered next, and
// no notice was received before.
func (p *peer) quiet() {
	p.t.Helper()
	p.send(`{"kind":"ping"}`)
	if got := p.recv(); got != `{"kind":"pong"}` {
		p.t.Fatalf("unexpected frame %s", got)
	}
	if len(p.notices) > 0 {
		p.t.Fatalf("unexpected notices %v", p.notices)
	}
}

// failure is a refused response.
type failure struct{ Code, Message string }

func (f *failure) Error() string { return f.Code + ": " + f.Message }

// request sends a request and returns its id.
func (p *peer) request(op string, params any) string {
	p.t.Helper()
	p.next++
	id := fmt.Sprintf("r%d", p.next)
	raw, err := json.Marshal(map[string]any{"kind": "request", "request_id": id, "op": op, "params": params}, json.Deterministic(true))
	if err != nil {
		p.t.Fatal(err)
	}
	p.send(string(raw))
	return id
}

type reply struct {
	Kind    string         `json:"kind"`
	ID      string         `json:"request_id"`
	OK      bool           `json:"ok"`
	Result  jsontext.Value `json:"result"`
	Code    string         `json:"error_code"`
	Message string         `json:"error_message"`
}

// set keeps an answer for the caller that waits for it.
func (p *peer) set(f reply) {
	if p.early == nil {
		p.early = map[string]reply{}
	}
	p.early[f.ID] = f
}

// response waits for the answer to a request, and keeps everything else for later.
func (p *peer) response(id string) (jsontext.Value, error) {
	p.t.Helper()
	f, ok := p.early[id]
	delete(p.early, id)
	for !ok {
		raw := p.recv()
		f = reply{}
		if err := json.Unmarshal([]byte(raw), &f); err != nil {
			p.t.Fatalf("%s: %v", raw, err)
		}
		switch {
		case f.Kind == "notify":
			p.keep(raw)
		case f.Kind != "response":
			p.t.Fatalf("got %s while waiting for %s", raw, id)
		case f.ID != id:
			p.set(f)
		default:
			ok = true
		}
	}
	if !f.OK {
		return nil, &failure{f.Code, f.Message}
	}
	return f.Result, nil
}

func (p *peer) keep(raw string) {
	p.t.Helper()
	var n notice
	if err := json.Unmarshal([]byte(raw), &n); err != nil {
		p.t.Fatalf("%s: %v", raw, err)
	}
	p.notices = append(p.notices, n)
}

// try calls an operation.
func (p *peer) try(op string, params any) (jsontext.Value, error) {
	p.t.Helper()
	return p.response(p.request(op, params))
}

// call calls an operation that must succeed, and reads its result.
func (p *peer) call(op string, params, result any) {
	p.t.Helper()
	raw, err := p.try(op, params)
	if err != nil {
		p.t.Fatalf("%s: %v", op, err)
	}
	if result == nil {
		return
	}
	if err := json.Unmarshal(raw, result); err != nil {
		p.t.Fatalf("%s: %s: %v", op, raw, err)
	}
}

// notified returns the next notice.
func (p *peer) notified() notice {
	p.t.Helper()
	for len(p.notices) == 0 {
		raw := p.recv()
		var f reply
		if json.Unmarshal([]byte(raw), &f) == nil && f.Kind == "response" {
			p.set(f) // it arrived first; the caller that waits for it finds it here
			continue
		}
		p.keep(raw)
	}
	n := p.notices[0]
	p.notices = p.notices[1:]
	return n
}

// notifiedOf skips to the next notice of a type.
func (p *peer) notifiedOf(eventType string) notice {
	p.t.Helper()
	for {
		if n := p.notified(); n.Envelope["event_type"] == eventType {
			return n
		}
	}
}

// logs collects log lines.
type logs struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *logs) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *logs) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

// until waits for a condition that another goroutine fulfils.
func until(t testing.TB, what string, ok func() bool) {
	t.Helper()
	deadline := time.NewTimer(wait)
	defer deadline.Stop()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-deadline.C:
			t.Fatalf("waited in vain: %s", what)
		}
	}
}
