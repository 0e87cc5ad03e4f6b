package client_test

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/parley-hub/parley/agent"
	"github.com/parley-hub/parley/client"
	"github.com/parley-hub/parley/conformance/spec"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/task"
)

// link is a way to reach a hub.
type link struct {
	name string
	open func(t testing.TB, r *rig) func(client.Options) *client.Client
}

var links = []link{
	{"WebSocket", func(_ testing.TB, r *rig) func(client.Options) *client.Client { return r.dial }},
	{"in memory", inMemory},
	{"WebSocket with TLS", overTLS},
}

// Every link passes the same suite.
func TestLinks(t *testing.T) {
	t.Parallel()
	for _, l := range links {
		for _, c := range suite {
			spec.Check(t, "seed-000#85: over "+l.name+", "+c.name, func(t *spec.T) {
				t.Parallel()
				r := newRig(t)
				c.run(t, r, l.open(t, r))
			})
		}
	}
}

var suite = []struct {
	name string
	run  func(t *spec.T, r *rig, dial func(client.Options) *client.Client)
}{
	{"conversation", func(t *spec.T, r *rig, dial func(client.Options) *client.Client) {
		a, b := r.attach(dial(client.Options{}), "alice"), r.attach(dial(client.Options{}), "bob")
		ch := r.open("conversation", a, b)
		id, err := a.Send(t.Context(), ch, "hi")
		t.NoError(err)
		d := r.receive(b, envelope.TypeText)
		t.Equal([]string{d.Envelope.ID, string(d.Envelope.Data)}, []string{id, `{"text":"hi"}`})
		t.NoError(d.Ack(t.Context()))
		until(t, "the ack arrives", func() bool {
			cursor, err := r.hub.Cursor(t.Context(), b.ID(), ch)
			return err == nil && cursor == id
		})
	}},
	{"an agent answers", func(t *spec.T, r *rig, dial func(client.Options) *client.Client) {
		a, b := r.attach(dial(client.Options{}), "alice"), r.attach(dial(client.Options{}), "bob")
		r.run(b, echo, agent.Options{})
		ch := r.invite("consulting", a, b)
		_, err := a.Send(t.Context(), ch, "hello")
		t.NoError(err)
		t.Equal(string(r.receive(a, envelope.TypeText).Envelope.Data), `{"text":"HELLO"}`)
	}},
	{"replay", func(t *spec.T, r *rig, dial func(client.Options) *client.Client) {
		a := r.attach(dial(client.Options{}), "alice")
		away := dial(client.Options{})
		ch := r.open("conversation", a, r.attach(away, "bob"))
		t.NoError(away.Close())
		id, err := a.Send(t.Context(), ch, "missed")
		t.NoError(err)
		t.Equal(r.receive(r.attach(dial(client.Options{}), "bob"), envelope.TypeText).Envelope.ID, id)
	}},
	{"a large message", func(t *spec.T, r *rig, dial func(client.Options) *client.Client) {
		a, b := r.attach(dial(client.Options{}), "alice"), r.attach(dial(client.Options{}), "bob")
		ch := r.open("conversation", a, b)
		text := strings.Repeat("é", 400_000)
		_, err := a.Send(t.Context(), ch, text)
		t.NoError(err)
		t.Equal(string(r.receive(b, envelope.TypeText).Envelope.Data), `{"text":"`+text+`"}`)
	}},
	{"tasks", func(t *spec.T, r *rig, dial func(client.Options) *client.Client) {
		a := r.attach(dial(client.Options{}), "alice")
		t.NoError(a.ObserveTask(t.Context(), &task.Task{ID: "t1", State: task.Running, Spec: task.Spec{Title: "scan", Capability: "ocr"}}))
		t.NoError(a.UpdateTask(t.Context(), task.Update{ID: "t1", Progress: []byte(`{"page":1}`)}))
		t.NoError(a.UpdateTask(t.Context(), task.Update{ID: "t1", State: task.Completed, Result: []byte(`[1.50]`)}))
		got, err := a.Task(t.Context(), "t1")
		t.NoError(err)
		t.Equal([]string{got.Owner, string(got.State), string(got.Progress), string(got.Result), got.Spec.Capability},
			[]string{a.ID(), "completed", `{"page":1}`, `[1.50]`, "ocr"})
		list, err := a.ListTasks(t.Context(), agent.TaskQuery{State: task.Completed, Limit: 5})
		t.NoError(err)
		t.Equal(list, []*task.Task{got})
		t.NoError(a.RecordObservation(t.Context(), agent.Observation{Capability: "ocr", Outcome: task.Completed, TaskID: "t1"}))
		t.NoError(a.Checkpoint(t.Context(), "t1", []byte(`{"step":2.0}`)))
		state, err := a.ReadCheckpoint(t.Context(), "t1")
		t.NoError(err)
		t.Equal(string(state), `{"step":2.0}`)
		peers, err := a.Peers(t.Context(), agent.PeerQuery{Capability: "ocr"})
		t.NoError(err)
		t.Equal(peers[0].Observed, map[string]agent.Observed{"ocr": {N: 1, Completed: 1}})
	}},
}

// inMemory reaches the hub without a socket.
func inMemory(t testing.TB, r *rig) func(client.Options) *client.Client {
	ln := newPipes()
	server := &http.Server{Handler: r.server}
	var done sync.WaitGroup
	done.Go(func() { _ = server.Serve(ln) })
	t.Cleanup(func() { _ = server.Close(); done.Wait() })
	web := &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return ln.dial(ctx) },
	}}
	return dialer(t, "ws://memory", web)
}

func overTLS(t testing.TB, r *rig) func(client.Options) *client.Client {
	server := httptest.NewTLSServer(r.server)
	t.Cleanup(server.Close)
	web := server.Client()
	web.Transport.(*http.Transport).TLSClientConfig.MinVersion = tls.VersionTLS12
	return dialer(t, strings.Replace(server.URL, "https", "wss", 1), web)
}

func dialer(t testing.TB, url string, web *http.Client) func(client.Options) *client.Client {
	return func(o client.Options) *client.Client {
		t.Helper()
		o.Log, o.HTTP = quiet, web
		c, err := client.Dial(t.Context(), url, o)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
}

// pipes is a listener whose connections are memory.
type pipes struct {
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
}

func newPipes() *pipes { return &pipes{conns: make(chan net.Conn), done: make(chan struct{})} }

func (p *pipes) dial(ctx context.Context) (net.Conn, error) {
	near, far := net.Pipe()
	select {
	case p.conns <- far:
		return near, nil
	case <-p.done:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	p.once.Do(func() { close(p.done) })
	return nil
}

func (p *pipes) Addr() net.Addr { return memory{} }

type memory struct{}

func (memory) Network() string { return "memory" }
func (memory) String() string  { return "memory" }
