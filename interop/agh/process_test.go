package agh

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// patience is how long something may take on a busy machine.
const patience = 60 * time.Second

func binary(t *testing.T, variable string) string {
	t.Helper()
	path := os.Getenv(variable)
	if path == "" {
		t.Fatalf("%s is not set; run make test", variable)
	}
	return path
}

// freeAddress is an unused address.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// natsToken is what clients of the server show.
const natsToken = "interop-token"

// natsServer is a NATS server in a process of its own.
type natsServer struct {
	address string
	cmd     *exec.Cmd
}

func startNATS(t *testing.T) *natsServer {
	t.Helper()
	s := &natsServer{address: freeAddress(t)}
	s.start(t)
	t.Cleanup(func() { s.kill() })
	return s
}

func (s *natsServer) start(t *testing.T) {
	t.Helper()
	host, port, _ := net.SplitHostPort(s.address)
	s.cmd = exec.Command(binary(t, "NATS_BIN"), "-a", host, "-p", port, "--auth", natsToken)
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "NATS listens", func() bool {
		c, err := net.Dial("tcp", s.address)
		if err == nil {
			c.Close()
		}
		return err == nil
	})
}

func (s *natsServer) kill() {
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
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

// hubProcess is a process of parley serve.
type hubProcess struct {
	dir  string
	args []string
	env  []string
	cmd  *exec.Cmd
	url  string
}

func startHub(t *testing.T, args ...string) *hubProcess {
	t.Helper()
	h := &hubProcess{dir: t.TempDir(), args: args, env: []string{"PARLEY_AGH_GREET_INTERVAL=1s"}}
	h.start(t)
	t.Cleanup(func() { h.end(os.Interrupt) })
	return h
}

func (h *hubProcess) start(t *testing.T) {
	t.Helper()
	args := append([]string{"serve", "-o", "json", "--data", "data", "--listen", "127.0.0.1:0", "--log-level", "error"}, h.args...)
	h.cmd = exec.Command(binary(t, "PARLEY_BIN"), args...)
	h.cmd.Dir, h.cmd.Stderr = h.dir, os.Stderr
	h.cmd.Env = append(append(os.Environ(), "HOME="+h.dir), h.env...)
	out, err := h.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := h.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	late := time.AfterFunc(patience, func() { _ = h.cmd.Process.Kill() })
	defer late.Stop()
	line, err := bufio.NewReader(out).ReadBytes('\n')
	if err != nil {
		t.Fatalf("parley serve said nothing: %v", err)
	}
	go func() { _, _ = io.Copy(io.Discard, out) }()
	var said struct {
		URL string `json:"url"`
	}
	if err := json.Unmarshal(line, &said); err != nil {
		t.Fatalf("%v: %s", err, line)
	}
	h.url = said.URL
}

func (h *hubProcess) end(signal os.Signal) {
	_ = h.cmd.Process.Signal(signal)
	_ = h.cmd.Wait()
}

// broker is where the hub's own NATS server listens, and its token.
func (h *hubProcess) broker(t *testing.T) (url, token string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(h.dir, "data", "nats-token"))
	if err != nil {
		t.Fatal(err)
	}
	status := (&hub{T: t, hubProcess: h}).status()
	return fmt.Sprintf("nats://%s:%v", status["listener_host"], status["listener_port"]), strings.TrimSpace(string(text))
}

// proxy is between the hub and NATS, so that the two can be disconnected.
type proxy struct {
	listener net.Listener
	to       string
	cut      chan bool
	conns    chan net.Conn
}

func startProxy(t *testing.T, to string) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{listener: l, to: to, cut: make(chan bool), conns: make(chan net.Conn)}
	t.Cleanup(func() { l.Close() })
	go p.govern()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			p.conns <- c
		}
	}()
	return p
}

// govern joins connections while nothing is cut.
func (p *proxy) govern() {
	parted := false
	var open []net.Conn
	for {
		select {
		case parted = <-p.cut:
			for _, c := range open {
				c.Close()
			}
			open = nil
		case c := <-p.conns:
			far, err := net.Dial("tcp", p.to)
			if parted || err != nil {
				c.Close()
				continue
			}
			open = append(open, c, far)
			go func() { _, _ = io.Copy(far, c); far.Close() }()
			go func() { _, _ = io.Copy(c, far); c.Close() }()
		}
	}
}
