package bridge

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"
)

// patience is how long something may take on a busy machine.
const patience = 90 * time.Second

type obj = map[string]any

func variable(t *testing.T, name string) string {
	t.Helper()
	value := os.Getenv(name)
	if value == "" {
		t.Fatalf("%s is not set; run make test", name)
	}
	return value
}

func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// eventually waits until something is so.
func eventually(t *testing.T, what string, so func() bool) {
	t.Helper()
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	late := time.After(patience)
	for !so() {
		select {
		case <-ticker.C:
		case <-late:
			t.Fatalf("it was never so that %s", what)
		}
	}
}

// hub is a process of parley serve, always at the same address and data.
type hub struct {
	t       *testing.T
	dir     string
	address string
	nats    string
	cmd     *exec.Cmd
	token   string            // the operator's
	keys    map[string]string // of agents, by name
}

const natsToken = "interop-token"

// newHub starts a hub with keys for an operator and for some names.
func newHub(t *testing.T, names ...string) *hub {
	t.Helper()
	h := &hub{t: t, dir: t.TempDir(), address: freeAddress(t), nats: freeAddress(t)}
	host, port, _ := net.SplitHostPort(h.nats)
	broker := exec.Command(variable(t, "NATS_BIN"), "-a", host, "-p", port, "--auth", natsToken)
	if err := broker.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = broker.Process.Kill()
		_ = broker.Wait()
	})
	eventually(t, "NATS listens", func() bool {
		c, err := net.Dial("tcp", h.nats)
		if err == nil {
			c.Close()
		}
		return err == nil
	})
	h.token = h.key("--role", "operator") // before it runs, while no process has the folder
	h.keys = map[string]string{}
	for _, name := range names {
		h.keys[name] = h.key("--agent", name)
	}
	h.start()
	t.Cleanup(h.kill)
	return h
}

// key makes an access key.
func (h *hub) key(args ...string) string {
	h.t.Helper()
	cmd := exec.Command(variable(h.t, "PARLEY_BIN"), append([]string{"keys", "add", "--data", "data"}, args...)...)
	cmd.Dir, cmd.Env = h.dir, append(os.Environ(), "HOME="+h.dir)
	out, err := cmd.CombinedOutput()
	token := regexp.MustCompile(`parley_[\w-]+`).Find(out)
	if err != nil || token == nil {
		h.t.Fatalf("parley keys add: %v: %s", err, out)
	}
	return string(token)
}

func (h *hub) start() {
	h.t.Helper()
	h.cmd = exec.Command(variable(h.t, "PARLEY_BIN"), "serve", "--data", "data", "--listen", h.address, "--nats-url", "nats://"+natsToken+"@"+h.nats, "--log-level", "error")
	h.cmd.Dir, h.cmd.Stderr = h.dir, os.Stderr
	h.cmd.Env = append(os.Environ(), "HOME="+h.dir, "PARLEY_AGH_GREET_INTERVAL=1s")
	if err := h.cmd.Start(); err != nil {
		h.t.Fatal(err)
	}
	eventually(h.t, "the hub is ready", func() bool {
		answer, err := http.Get("http://" + h.address + "/readyz")
		if err == nil {
			answer.Body.Close()
		}
		return err == nil && answer.StatusCode == http.StatusOK
	})
}

// kill ends the hub as a crash does.
func (h *hub) kill() {
	_ = h.cmd.Process.Kill()
	_ = h.cmd.Wait()
}

func (h *hub) restart() {
	h.t.Helper()
	h.kill()
	h.start()
}

// try makes a request with a token.
func (h *hub) try(token, method, path string, body any) (int, obj) {
	h.t.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		h.t.Fatal(err)
	}
	request, err := http.NewRequest(method, "http://"+h.address+path, bytes.NewReader(text))
	if err != nil {
		h.t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+token)
	request.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		h.t.Fatal(err)
	}
	defer answer.Body.Close()
	data, err := io.ReadAll(answer.Body)
	if err != nil {
		h.t.Fatal(err)
	}
	found := obj{}
	if len(data) > 0 && json.Unmarshal(data, &found) != nil {
		found = obj{"text": string(data)}
	}
	return answer.StatusCode, found
}

// ask makes a request that must succeed.
func (h *hub) ask(token, method, path string, body any) obj {
	h.t.Helper()
	status, answer := h.try(token, method, path, body)
	if status >= 300 {
		h.t.Fatalf("%s %s: %d %v", method, path, status, answer)
	}
	return answer
}

// end is a process that takes one command a line and answers each with one.
type end struct {
	t   *testing.T
	in  io.WriteCloser
	out *bufio.Reader
}

func startEnd(t *testing.T, program string, args ...string) *end {
	t.Helper()
	cmd := exec.Command(program, args...)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	late := time.AfterFunc(4*patience, func() { _ = cmd.Process.Kill() })
	t.Cleanup(func() {
		late.Stop()
		_ = in.Close()
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return &end{t, in, bufio.NewReader(out)}
}

// try has the end do something.
func (e *end) try(op string, args obj) obj {
	e.t.Helper()
	command := obj{"op": op}
	for name, value := range args {
		command[name] = value
	}
	text, err := json.Marshal(command)
	if err != nil {
		e.t.Fatal(err)
	}
	if _, err := e.in.Write(append(text, '\n')); err != nil {
		e.t.Fatal(err)
	}
	line, err := e.out.ReadString('\n')
	if err != nil {
		e.t.Fatalf("%s: %v", op, err)
	}
	var answer obj
	if err := json.Unmarshal([]byte(strings.TrimSpace(line)), &answer); err != nil {
		e.t.Fatalf("%s: %v: %s", op, err, line)
	}
	return answer
}

func (e *end) do(op string, args obj) obj {
	e.t.Helper()
	answer := e.try(op, args)
	if failed, ok := answer["error"]; ok {
		e.t.Fatalf("%s: %v", op, failed)
	}
	return answer
}

// said reads what an end saw.
func (e *end) said(channel string) []said {
	e.t.Helper()
	return pairs(e.t, e.do("read", obj{"channel": channel})["said"])
}

// watched is what an end was told of a channel while it happened.
func (e *end) watched(channel string) []said {
	e.t.Helper()
	return pairs(e.t, e.do("watched", obj{"channel": channel})["said"])
}

// follower follows a channel over /v1 as a browser's EventSource does: after a
// disconnect it continues with the id of the last event.
type follower struct {
	h    *hub
	mu   sync.Mutex
	seen []obj // texts
}

// follow follows a channel until the test ends.
func (h *hub) follow(token, channel string) *follower {
	h.t.Helper()
	f := &follower{h: h}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for last := ""; ctx.Err() == nil; {
			last = f.read(ctx, token, channel, last)
			select {
			case <-time.After(100 * time.Millisecond):
			case <-ctx.Done():
			}
		}
	}()
	h.t.Cleanup(func() { cancel(); <-done })
	return f
}

// read reads a stream until it is cut off, and returns the id of its last event.
func (f *follower) read(ctx context.Context, token, channel, last string) string {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+f.h.address+"/v1/channels/"+channel+"/events?follow", nil)
	if err != nil {
		return last
	}
	request.Header.Set("Authorization", "Bearer "+token)
	request.Header.Set("Accept", "text/event-stream")
	if last != "" {
		request.Header.Set("Last-Event-ID", last)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return last
	}
	defer answer.Body.Close()
	lines := bufio.NewScanner(answer.Body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if id, ok := strings.CutPrefix(lines.Text(), "id: "); ok {
			last = id
		}
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		var e obj
		if !ok || json.Unmarshal([]byte(data), &e) != nil || e["event_type"] != "ag2.msg.text" {
			continue
		}
		f.mu.Lock()
		f.seen = append(f.seen, e)
		f.mu.Unlock()
	}
	return last
}

// watched is what it saw.
func (f *follower) watched(token string) []said {
	f.mu.Lock()
	defer f.mu.Unlock()
	all := []said{}
	for _, e := range f.seen {
		all = append(all, said{nameOf(f.h.ask(token, "GET", "/v1/agents/"+e["sender_id"].(string), nil)), e["event_data"].(obj)["text"].(string)})
	}
	return all
}

// said is who said what.
type said struct{ Speaker, Text string }

func pairs(t *testing.T, list any) []said {
	t.Helper()
	all := []said{}
	for _, one := range list.([]any) {
		pair := one.([]any)
		all = append(all, said{pair[0].(string), pair[1].(string)})
	}
	return all
}
