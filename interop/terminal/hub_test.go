package terminal

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// patience is how long something may take on a busy machine.
const patience = 60 * time.Second

func parley(t *testing.T) string {
	t.Helper()
	path := os.Getenv("PARLEY_BIN")
	if path == "" {
		t.Fatal("PARLEY_BIN is not set; run make test")
	}
	return path
}

// hub is a hub in a process of its own.
type hub struct {
	t    *testing.T
	dir  string
	addr string
	cmd  *exec.Cmd
}

func startHub(t *testing.T) *hub {
	t.Helper()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	h := &hub{t: t, dir: t.TempDir(), addr: free.Addr().String()}
	if err := free.Close(); err != nil {
		t.Fatal(err)
	}
	h.start()
	t.Cleanup(h.kill)
	return h
}

func (h *hub) url() string { return "http://" + h.addr }

// start starts the hub and waits until it says that it serves.
func (h *hub) start() {
	h.t.Helper()
	h.cmd = exec.Command(parley(h.t), "serve", "--data", filepath.Join(h.dir, "data"), "--listen", h.addr, "-o", "json")
	out, err := h.cmd.StdoutPipe()
	if err != nil {
		h.t.Fatal(err)
	}
	if err := h.cmd.Start(); err != nil {
		h.t.Fatal(err)
	}
	said := make(chan string, 1)
	go func() {
		lines := bufio.NewReader(out)
		line, _ := lines.ReadString('\n')
		said <- line
		_, _ = io.Copy(io.Discard, lines)
	}()
	select {
	case line := <-said:
		if !strings.Contains(line, h.addr) {
			h.t.Fatalf("the hub says %q", line)
		}
	case <-time.After(patience):
		h.t.Fatal("the hub does not start")
	}
}

// kill kills the hub's process.
func (h *hub) kill() {
	if h.cmd != nil {
		_ = h.cmd.Process.Kill()
		_ = h.cmd.Wait()
		h.cmd = nil
	}
}

// run runs a command of parley against the hub, and returns what it prints.
func (h *hub) run(args ...string) string {
	h.t.Helper()
	out, err := h.command(args...).Output()
	if err != nil {
		h.t.Fatalf("parley %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

func (h *hub) command(args ...string) *exec.Cmd {
	cmd := exec.Command(parley(h.t), args...)
	cmd.Env = append(os.Environ(), "PARLEY_HUB="+h.url())
	return cmd
}

// echo registers an agent that answers with what it is told.
func (h *hub) echo(name string) {
	h.t.Helper()
	cmd := exec.Command(parley(h.t), "agent", "echo", name, "--hub", h.url())
	if err := cmd.Start(); err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	h.until("/v1/agents", func(answer string) bool { return strings.Contains(answer, `"name":"`+name+`"`) })
}

// until asks the hub until its answer is as wanted.
func (h *hub) until(path string, as func(answer string) bool) {
	h.t.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	last := ""
	for late := time.Now().Add(patience); time.Now().Before(late); <-tick.C {
		resp, err := http.Get(h.url() + path)
		if err != nil {
			continue
		}
		raw, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if last = string(raw); as(last) {
			return
		}
	}
	h.t.Fatalf("%s stays %s", path, last)
}

// open opens a channel and returns its id.
func (h *hub) open(args ...string) string {
	h.t.Helper()
	var made struct {
		ID string `json:"channel_id"`
	}
	if err := json.Unmarshal([]byte(h.run(append([]string{"channels", "open", "-o", "json"}, args...)...)), &made); err != nil || made.ID == "" {
		h.t.Fatalf("no channel was opened: %v", err)
	}
	return made.ID
}

// ask asks in a channel, and returns the request's id.
func (h *hub) ask(channel string, question map[string]any) string {
	h.t.Helper()
	raw, err := json.Marshal(question)
	if err != nil {
		h.t.Fatal(err)
	}
	resp, err := http.Post(h.url()+"/v1/channels/"+channel+"/requests", "application/json", bytes.NewReader(raw))
	if err != nil {
		h.t.Fatal(err)
	}
	defer resp.Body.Close()
	var asked struct {
		ID     string `json:"request_id"`
		Detail string `json:"detail"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&asked); err != nil || asked.ID == "" {
		h.t.Fatalf("not asked: %v %s", err, asked.Detail)
	}
	return asked.ID
}
