package demo

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"time"
)

// process is a hub in a process of its own, so that it can really be killed.
type process struct {
	dir, log string
	url      string
	nats     string // address of its NATS server
	cmd      *exec.Cmd
}

// start runs parley serve and waits until it says where it listens. A second
// start listens on the same address.
func (h *process) start(ctx context.Context) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	listen := "127.0.0.1:0"
	if h.url != "" {
		at, err := url.Parse(h.url)
		if err != nil {
			return err
		}
		listen = at.Host
	}
	if h.nats == "" {
		if h.nats, err = freeAddress(ctx); err != nil {
			return err
		}
	}
	log, err := os.OpenFile(h.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	args := []string{"serve", "-o", "json", "--data", h.dir, "--listen", listen, "--nats", h.nats, "--set", "hpd.user=database"}
	h.cmd = exec.Command(self, args...) //nolint:noctx // stop ends it, and kill before
	h.cmd.Stderr = log
	endWithParent(h.cmd)
	out, err := h.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := h.cmd.Start(); err != nil {
		return err
	}
	type said struct {
		URL string `json:"url"`
		err error
	}
	answer := make(chan said, 1)
	go func() {
		var s said
		line, err := bufio.NewReader(out).ReadBytes('\n')
		if s.err = err; err == nil {
			s.err = json.Unmarshal(line, &s)
		}
		answer <- s
	}()
	select {
	case s := <-answer:
		if s.err != nil {
			return fmt.Errorf("the hub did not start (%w); its log is %s", s.err, h.log)
		}
		h.url = s.URL
		return nil
	case <-time.After(30 * time.Second):
		return fmt.Errorf("the hub did not start in time; its log is %s", h.log)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// freeAddress returns an unused address. The hub must know it before it starts,
// because peers connect to it again after the crash.
func freeAddress(ctx context.Context) (string, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

// kill ends the hub as a crash would.
func (h *process) kill() error {
	if err := h.cmd.Process.Kill(); err != nil {
		return err
	}
	_ = h.cmd.Wait() // it was killed: there is no other end
	return nil
}

// stop shuts the hub down, and kills it if that takes too long.
func (h *process) stop() {
	if h.cmd == nil || h.cmd.ProcessState != nil {
		return
	}
	_ = h.cmd.Process.Signal(os.Interrupt)
	late := time.AfterFunc(10*time.Second, func() { _ = h.cmd.Process.Kill() })
	defer late.Stop()
	_ = h.cmd.Wait()
}
