package hpd_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/parley-hub/parley/adapter"
	"github.com/parley-hub/parley/adapter/branch"
	"github.com/parley-hub/parley/dialect/hpd"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/hub"
	"github.com/parley-hub/parley/identity"
	"github.com/parley-hub/parley/journal"
	"github.com/parley-hub/parley/journal/mem"
)

// wait bounds how long a test waits for an expected event.
const wait = 20 * time.Second

// rig is a real hub behind a real server on a real socket.
type rig struct {
	t      testing.TB
	store  *mem.Store
	config hpd.Config
	hub    *hub.Hub
	server *hpd.Server
	http   *httptest.Server
	engine *mem.Engine
	// opened, if set, is called when the hub is open and before anything is served.
	opened func()
	// records counts the records that were read from logs.
	records *atomic.Int64
	refuse  func() error // if set, returns an error for a batch to refuse; it changes between two starts
	armed   atomic.Value // func(), called before each batch is passed to the engine
}

// hooked is an engine that calls the rig for each batch.
type hooked struct {
	*mem.Engine
	rig *rig
}

func (h hooked) Append(ctx context.Context, b journal.Batch) (*journal.Ticket, error) {
	if armed, ok := h.rig.armed.Load().(func()); ok {
		armed()
	}
	if refuse := h.rig.refuse; refuse != nil {
		if err := refuse(); err != nil {
			return nil, err
		}
	}
	return h.Engine.Append(ctx, b)
}

// Read counts the records that are read.
func (h hooked) Read(ctx context.Context, log journal.LogName, o journal.ReadOptions) (journal.Page, error) {
	page, err := h.Engine.Read(ctx, log, o)
	h.rig.records.Add(int64(len(page.Entries)))
	return page, err
}

// eventually waits until a condition holds.
func eventually(t testing.TB, holds func() bool) {
	t.Helper()
	poll, late := time.NewTicker(time.Millisecond), time.After(wait)
	defer poll.Stop()
	for !holds() {
		select {
		case <-poll.C:
		case <-late:
			t.Fatal("it did not happen")
		}
	}
}

type object = map[string]any

func newRig(t testing.TB, config hpd.Config) *rig {
	t.Helper()
	r := &rig{t: t, store: mem.NewStore(), config: config, records: new(atomic.Int64)}
	r.start()
	t.Cleanup(r.stop)
	return r
}

func (r *rig) start() {
	r.t.Helper()
	var err error
	if r.engine, err = mem.Open(mem.Options{Store: r.store}); err != nil {
		r.t.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	record := r.config.Limits.Record
	if record == 0 {
		record = 16 << 10
	}
	events := branch.Options{Record: record}
	if r.config.Registry != nil {
		events.Table = r.config.Registry.Table
	}
	r.hub, err = hub.Open(r.t.Context(), hooked{r.engine, r}, hub.Options{
		Adapters: append(adapter.All(), branch.New(events)),
		Auth:     identity.NewAuthRegistry(identity.None{}), Log: log,
	})
	if err != nil {
		r.t.Fatal(err)
	}
	if r.opened != nil {
		r.opened()
	}
	config := r.config
	config.Hub, config.Log = r.hub, log
	if r.server, err = hpd.New(config); err != nil {
		r.t.Fatal(err)
	}
	if err := r.server.Start(r.t.Context()); err != nil {
		r.t.Fatal(err)
	}
	r.http = httptest.NewUnstartedServer(r.server.Mount().Routes[0].Handler) // it accepts every path unchanged
	r.http.Config.ConnContext = func(ctx context.Context, conn net.Conn) context.Context {
		_ = conn.(*net.TCPConn).SetWriteBuffer(64 << 10) // so that a reader that stops is soon behind
		return ctx
	}
	r.http.Start()
}

func (r *rig) stop() {
	ctx, cancel := context.WithTimeout(context.Background(), wait)
	defer cancel()
	if err := r.server.Drain(ctx); err != nil {
		r.t.Errorf("the server did not close: %v", err)
	}
	r.http.Close()
	r.hub.Close()
	_ = r.engine.Close()
}

// crash ends everything without notice: the store refuses all further writes.
func (r *rig) crash() {
	r.t.Helper()
	_ = r.engine.Close()
	r.stop()
	r.start()
}

func (r *rig) restart() {
	r.t.Helper()
	r.stop()
	r.start()
}

// answer is the response of a route.
type answer struct {
	status int
	header http.Header
	raw    []byte
}

func (a answer) object() object {
	var out object
	_ = json.Unmarshal(a.raw, &out)
	return out
}

func (a answer) list() []object {
	var out []object
	_ = json.Unmarshal(a.raw, &out)
	return out
}

// code returns the first code of a problem.
func (a answer) code() string {
	errors, _ := a.object()["errors"].(object)
	for code := range errors {
		return code
	}
	return ""
}

// do sends a request; the body is JSON text, or a value to encode.
func (r *rig) do(method, path string, body any) answer {
	r.t.Helper()
	return r.send(method, path, body, nil)
}

func (r *rig) send(method, path string, body any, header map[string]string) answer {
	r.t.Helper()
	var data []byte
	switch b := body.(type) {
	case nil:
	case string:
		data = []byte(b)
	default:
		data, _ = json.Marshal(b)
	}
	ctx, cancel := context.WithTimeout(r.t.Context(), wait)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, r.http.URL+"/hpd"+path, bytes.NewReader(data))
	if err != nil {
		r.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	for k, v := range header {
		req.Header.Set(k, v)
	}
	res, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		r.t.Fatal(err)
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		r.t.Fatalf("%s %s: %v", method, path, err)
	}
	return answer{res.StatusCode, res.Header, raw}
}

// session creates a session and returns its id.
func (r *rig) session() string {
	r.t.Helper()
	a := r.do("POST", "/sessions", nil)
	if a.status != http.StatusCreated {
		r.t.Fatalf("session: %d %s", a.status, a.raw)
	}
	return a.object()["id"].(string)
}

// history returns the events of GET B/events.
func (r *rig) history(session, branch string) []object {
	r.t.Helper()
	a := r.do("GET", "/sessions/"+session+"/branches/"+branch+"/events", nil)
	if a.status != http.StatusOK {
		r.t.Fatalf("history: %d %s", a.status, a.raw)
	}
	return a.list()
}

func types(events []object) []string {
	list := []string{}
	for _, e := range events {
		name, _ := e["type"].(string)
		list = append(list, name)
	}
	return list
}

func only(events []object, names ...string) []object {
	return slices.DeleteFunc(slices.Clone(events), func(e object) bool {
		name, _ := e["type"].(string)
		return !slices.Contains(names, name)
	})
}

// reader reads a stream of events.
type reader struct {
	t      testing.TB
	res    *http.Response
	cancel context.CancelFunc
	events chan frame
	once   sync.Once
	err    error // why it ended; set before events is closed
}

type frame struct {
	name  string
	id    string
	event object
	raw   string
}

// watch opens a stream and returns once its headers have arrived.
func (r *rig) watch(path string, header map[string]string) *reader {
	r.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, r.http.URL+"/hpd"+path, nil)
	if err != nil {
		r.t.Fatal(err)
	}
	for k, v := range header {
		req.Header.Set(k, v)
	}
	res, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		cancel()
		r.t.Fatal(err)
	}
	w := &reader{t: r.t, res: res, cancel: cancel, events: make(chan frame, 4096)}
	r.t.Cleanup(w.close)
	if res.StatusCode != http.StatusOK {
		r.t.Fatalf("stream: %d", res.StatusCode)
	}
	go w.pump()
	return w
}

func (w *reader) close() {
	w.once.Do(func() { w.cancel(); _ = w.res.Body.Close() })
}

// pump splits only at LF LF, as the stock client does.
func (w *reader) pump() {
	defer close(w.events)
	in := bufio.NewReader(w.res.Body)
	var block strings.Builder
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			if err != io.EOF {
				w.err = err
			}
			return
		}
		if line != "\n" {
			block.WriteString(line)
			continue
		}
		f := frame{raw: block.String()}
		block.Reset()
		var data string
		for l := range strings.SplitSeq(f.raw, "\n") {
			if v, ok := strings.CutPrefix(l, "data: "); ok {
				data += v
			}
			if v, ok := strings.CutPrefix(l, "id: "); ok {
				f.id = v
			}
			if v, ok := strings.CutPrefix(l, "event: "); ok {
				f.name = v
			}
		}
		if data != "" {
			_ = json.Unmarshal([]byte(data), &f.event)
		}
		w.events <- f
	}
}

// named waits for a frame with an event name.
func (w *reader) named(name string) object {
	w.t.Helper()
	timeout := time.After(wait)
	for {
		select {
		case f, ok := <-w.events:
			if !ok {
				w.t.Fatalf("the stream ended before %s: %v", name, w.err)
			}
			if f.name == name {
				return f.event
			}
		case <-timeout:
			w.t.Fatalf("no %s", name)
		}
	}
}

// until reads up to an event of a type, without comments.
func (w *reader) until(name string) []object {
	w.t.Helper()
	var seen []object
	for _, f := range w.frames(name) {
		seen = append(seen, f.event)
	}
	return seen
}

func (w *reader) frames(name string) []frame {
	w.t.Helper()
	var seen []frame
	timeout := time.After(wait)
	for {
		select {
		case f, ok := <-w.events:
			if !ok {
				w.t.Fatalf("the stream ended before %s: %v; seen %v", name, w.err, names(seen))
			}
			if f.event == nil {
				continue
			}
			seen = append(seen, f)
			if f.event["type"] == name {
				return seen
			}
		case <-timeout:
			w.t.Fatalf("no %s; seen %v", name, names(seen))
		}
	}
}

func names(seen []frame) []any {
	list := make([]any, len(seen))
	for i, f := range seen {
		list[i] = f.event["type"]
	}
	return list
}

// mainOf returns the channel of a session's branch main.
func mainOf(r *rig, session string) string {
	r.t.Helper()
	home, err := r.hub.FindHome(r.t.Context(), "hpd", session)
	if err != nil {
		r.t.Fatal(err)
	}
	id, err := r.hub.Named(r.t.Context(), home.ID, branch.Type, "main")
	if err != nil {
		r.t.Fatal(err)
	}
	return id
}

// side returns the side log of a session's branch main.
func (r *rig) side(session string) []*envelope.Envelope {
	r.t.Helper()
	list, err := r.hub.Side(r.t.Context(), mainOf(r, session))
	if err != nil {
		r.t.Fatal(err)
	}
	return list
}
