//go:build unix

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/parley-hub/parley/agent"
	"github.com/parley-hub/parley/client"
	v1 "github.com/parley-hub/parley/client/v1"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/identity"
	"github.com/parley-hub/parley/internal/doctor"
	"github.com/parley-hub/parley/journal/cluster/natsservers"
	"github.com/parley-hub/parley/view"
)

// nodes are the processes of a cluster on real servers.
type nodes struct {
	t       *testing.T
	ctx     context.Context
	dir     string
	servers *natsservers.Servers
	list    map[string]*nodeProcess
}

type nodeProcess struct {
	cmd *exec.Cmd
	url string
	out *output
}

func startServers(t *testing.T) *natsservers.Servers {
	t.Helper()
	servers, err := natsservers.Start(t.Context(), 3, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(servers.Stop)
	return servers
}

// startCluster makes a cluster and starts nodes.
func startCluster(t *testing.T, names ...string) *nodes {
	t.Helper()
	return startShards(t, 2, names...)
}

func startShards(t *testing.T, shards int, names ...string) *nodes {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 3*startTimeout)
	t.Cleanup(cancel)
	n := &nodes{t: t, ctx: ctx, dir: t.TempDir(), servers: startServers(t), list: map[string]*nodeProcess{}}
	n.run("cluster", "init", "--shards", strconv.Itoa(shards))
	for _, name := range names {
		n.start(name)
	}
	return n
}

// flags say where the cluster is.
func (n *nodes) flags() []string {
	return []string{
		"--cluster", n.servers.URL(), "--set", "cluster.monitor=" + strings.Join(n.servers.Monitors(), ","),
		"--set", "cluster.suspect=2400ms", // machines that run tests stand still for a while
	}
}

// run runs a command of the cluster.
func (n *nodes) run(args ...string) string {
	n.t.Helper()
	code, out, errs := call(n.t, nil, append(args, n.flags()...)...)
	if code != exitFine {
		n.t.Fatalf("%v: exit %d: %s", args, code, errs)
	}
	return out
}

func (n *nodes) start(name string) {
	n.t.Helper()
	n.launch(name, nil, append([]string{"--node-name", name, "--data", filepath.Join(n.dir, name), "--listen", "127.0.0.1:0"}, n.flags()...)...)
}

// launch starts a node's process.
func (n *nodes) launch(name string, environ []string, args ...string) {
	n.t.Helper()
	args = append([]string{"serve", "-o", "json"}, args...)
	p := &nodeProcess{cmd: exec.CommandContext(context.Background(), "parley", args...), out: &output{said: make(chan struct{}, 1)}} //nolint:gosec // itself
	p.cmd.Stdout, p.cmd.Stderr = p.out, p.out
	p.cmd.Env = append(os.Environ(), environ...)
	if err := p.cmd.Start(); err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(func() { n.end(name, syscall.SIGKILL) })
	p.out.await(n.t, `"url":"`)
	_, rest, _ := strings.Cut(p.out.String(), `"url":"`)
	p.url, _, _ = strings.Cut(rest, `"`)
	n.list[name] = p
}

// signal sends a signal to a node.
func (n *nodes) signal(name string, s syscall.Signal) {
	n.t.Helper()
	if err := n.list[name].cmd.Process.Signal(s); err != nil {
		n.t.Fatal(err)
	}
}

// end ends a node with a signal, if it still runs.
func (n *nodes) end(name string, s syscall.Signal) {
	p := n.list[name]
	if p == nil {
		return
	}
	delete(n.list, name)
	_ = p.cmd.Process.Signal(s)
	err := p.cmd.Wait()
	if s == syscall.SIGTERM && err != nil {
		n.t.Errorf("node %s ended with %v: %s", name, err, p.out.String())
	}
	if n.t.Failed() {
		n.t.Logf("node %s said: %s", name, p.out.String())
	}
}

// urls are the addresses of all nodes that run.
func (n *nodes) urls() string {
	var list []string
	for _, p := range n.list {
		list = append(list, p.url)
	}
	return strings.Join(list, ",")
}

// ready asks a node whether it serves, and what it says.
func (n *nodes) ready(name string) (status int, header http.Header, body string) {
	n.t.Helper()
	return n.get(n.list[name].url + "/readyz")
}

// get asks a node, once: one that begins to serve cuts off nobody who has connected.
func (n *nodes) get(url string) (status int, header http.Header, body string) {
	n.t.Helper()
	request, err := http.NewRequestWithContext(n.ctx, http.MethodGet, url, nil)
	if err != nil {
		n.t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		n.t.Fatal(err)
	}
	defer answer.Body.Close()
	raw, err := io.ReadAll(answer.Body)
	if err != nil {
		n.t.Fatal(err)
	}
	return answer.StatusCode, answer.Header, string(raw)
}

// serves waits until one of the nodes serves, other than one.
func (n *nodes) serves(but string) (serving string) {
	n.t.Helper()
	for {
		for name := range n.list {
			if name == but {
				continue
			}
			if status, _, _ := n.ready(name); status == http.StatusOK {
				return name
			}
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-n.ctx.Done():
			n.t.Fatal("no node serves")
		}
	}
}

// TestClusterSurvivesItsNodes: a conversation goes on, without loss or repeat, while
// the node that serves is killed, paused, stopped, and asked to hand over. One that
// wakes up refuses at once.
func TestClusterSurvivesItsNodes(t *testing.T) {
	t.Parallel()
	n := startCluster(t, "a", "b", "c")
	n.serves("")
	quiet := slog.New(slog.DiscardHandler)
	join := func(name string) *client.Identity {
		link, err := client.Dial(n.ctx, webSocket(n.urls()), client.Options{Log: quiet, Ping: time.Second})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = link.Close() })
		me, err := link.Attach(n.ctx, client.Registration{Passport: identity.Passport{Name: name}})
		if err != nil {
			t.Fatal(err)
		}
		return me
	}
	ann, bob := join("ann"), join("bob")
	reader := agent.NewHuman(bob, agent.HumanOptions{})
	defer reader.Disconnect()
	writer := agent.NewHuman(ann, agent.HumanOptions{})
	defer writer.Disconnect()
	opened, err := writer.Open(n.ctx, agent.Opening{Type: "conversation", Participants: []string{bob.ID()}})
	if err != nil {
		t.Fatal(err)
	}
	heard := make(chan string, 100)
	go func() {
		for {
			e, err := reader.Next(n.ctx, func(e *envelope.Envelope) bool { return e.Type == envelope.TypeText })
			if err != nil {
				return
			}
			text, _ := view.TextOnly{}.Render(e)
			heard <- text
		}
	}()
	var said []string
	say := func() {
		t.Helper()
		for range 3 {
			text := fmt.Sprint(len(said))
			if _, err := ann.Send(n.ctx, opened.ID, text); err != nil {
				t.Fatalf("message %s: %v", text, err)
			}
			said = append(said, text)
		}
	}
	say()

	// Killed: another serves, and the client finds it.
	first := n.serves("")
	n.end(first, syscall.SIGKILL)
	say()
	n.start(first)

	// Paused: another serves; when it wakes it says so, and answers nothing itself.
	second := n.serves("")
	n.signal(second, syscall.SIGSTOP)
	n.serves(second)
	say()
	n.signal(second, syscall.SIGCONT)
	if status, _, body := n.get(n.list[second].url + "/v1/channels"); status != http.StatusServiceUnavailable {
		t.Errorf("a node that wakes answers %d: %s", status, body)
	}
	for {
		status, header, body := n.ready(second)
		if status != http.StatusServiceUnavailable {
			t.Fatalf("the node that woke is ready: %s", body)
		}
		third := n.serves(second) // on a busy machine not always the one that served first
		if header.Get("Parley-Serving") == n.list[third].url && strings.Contains(body, "node "+third+" serves") {
			break
		}
	}

	// Asked to hand over.
	n.run("cluster", "move", second)
	for n.serves("") != second {
		if n.ctx.Err() != nil {
			t.Fatalf("another node serves after the move to %s", second)
		}
	}
	say()

	// Stopped.
	n.end(second, syscall.SIGTERM)
	n.serves("")
	say()

	log, err := ann.Log(n.ctx, opened.ID)
	if err != nil {
		t.Fatal(err)
	}
	var stored []string
	for _, e := range log {
		if text, ok := (view.TextOnly{}).Render(e); ok && e.Type == envelope.TypeText {
			stored = append(stored, text)
		}
	}
	if got, want := strings.Join(stored, " "), strings.Join(said, " "); got != want {
		t.Errorf("said %s, stored %s", want, got)
	}
	seen := map[string]bool{}
	for len(seen) < len(said) {
		select {
		case text := <-heard: // what was not acknowledged may come again
			seen[text] = true
		case <-n.ctx.Done():
			t.Fatalf("of %v only %v came", said, seen)
		}
	}

	// The interface of operators follows too, from any node.
	hub, err := v1.New(n.urls(), v1.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := hub.Session(n.ctx); err != nil {
		t.Error(err)
	}
	var report clusterReport
	if err := json.Unmarshal([]byte(n.run("cluster", "status", "-o", "json")), &report); err != nil {
		t.Fatal(err)
	}
	n.diagnosed("fine", fmt.Sprintf("node %s serves, 1 could take over", n.serves("")))
	if len(report.Nodes) != 2 || len(report.Shards) != 2 || report.Shards[0].Term == 0 || report.Shards[0].Error != "" {
		t.Errorf("status tells %+v", report)
	}
	wide := n.run("cluster", "status", "-o", "wide")
	for _, node := range report.Nodes {
		if !strings.Contains(wide, node.Address) || !strings.Contains(wide, node.Version) {
			t.Errorf("status -o wide lacks %+v:\n%s", node, wide)
		}
	}
}

// diagnosed asks the doctor what is said of the nodes.
func (n *nodes) diagnosed(verdict, found string) {
	n.t.Helper()
	_, out, errs := call(n.t, nil, "doctor", "-o", "json", "--hub", n.urls(), // in any order
		"--set", "cluster.url="+n.servers.URL(), "--set", "cluster.monitor="+strings.Join(n.servers.Monitors(), ","))
	var said struct {
		Findings []doctor.Finding `json:"findings"`
	}
	if err := json.Unmarshal([]byte(out), &said); err != nil {
		n.t.Fatalf("%v: %s%s", err, out, errs)
	}
	for _, want := range []doctor.Finding{{Check: "hub", Verdict: doctor.Fine}, {Check: "cluster servers", Verdict: doctor.Fine}, {Check: "cluster nodes", Verdict: doctor.Verdict(verdict), Found: found}} {
		if !slices.ContainsFunc(said.Findings, func(f doctor.Finding) bool {
			return f.Check == want.Check && f.Verdict == want.Verdict && strings.Contains(f.Found, want.Found)
		}) {
			n.t.Errorf("the doctor does not say %+v, but %s", want, out)
		}
	}
}

// TestAWipedNode takes its copies from another, and an interrupted stream is made
// anew from what a node has.
func TestAWipedNode(t *testing.T) {
	t.Parallel()
	n := startCluster(t, "a")
	n.serves("")
	n.diagnosed("warning", "no other could take over")
	hub, err := v1.New(n.urls(), v1.Options{})
	if err != nil {
		t.Fatal(err)
	}
	token, _, err := hub.AddKey(n.ctx, "operator", "")
	if err != nil {
		t.Fatal(err)
	}
	if code, _, errs := call(t, nil, append([]string{"cluster", "reseed", "--yes", "--data", filepath.Join(n.dir, "a")}, n.flags()...)...); code == exitFine || !strings.Contains(errs, "node a is running") {
		t.Errorf("reseed while a node runs: exit %d, %s", code, errs)
	}
	n.end("a", syscall.SIGTERM)
	n.run("cluster", "reseed", "--yes", "--data", filepath.Join(n.dir, "a"))
	n.start("a")
	n.serves("")
	n.start("b") // has nothing, and the streams begin after what it lacks
	for {
		if _, _, body := n.ready("b"); strings.Contains(body, `{"name":"copies","ok":true}`) {
			break
		}
		if n.ctx.Err() != nil {
			t.Fatal("b has no copies")
		}
	}
	n.end("a", syscall.SIGKILL)
	n.serves("")
	hub, err = v1.New(n.urls(), v1.Options{Token: token})
	if err != nil {
		t.Fatal(err)
	}
	if keys, err := hub.Keys(n.ctx); err != nil || len(keys) != 1 {
		t.Errorf("the key is known to %v, %v", keys, err)
	}
	anonymous, err := v1.New(n.urls(), v1.Options{Token: "parley_nobody"})
	if err != nil {
		t.Fatal(err)
	}
	var refused *fault.Error
	if _, err := anonymous.Keys(n.ctx); !errors.As(err, &refused) || refused.Code != fault.AuthFailed {
		t.Errorf("another key is answered with %v", err)
	}
	n.makesAnotherKey("b", token)
	n.refuses(filepath.Join(n.dir, "b"))
	if code, out, errs := call(t, nil, "data", "check", filepath.Join(n.dir, "b")); code != exitFine || !strings.Contains(out, "2 shards") {
		t.Errorf("data check: exit %d, %s%s", code, out, errs)
	}
}
