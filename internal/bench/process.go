package bench

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Process is a server that a bench has started.
type Process struct {
	cmd *exec.Cmd
	in  io.Closer
	URL string // for HTTP
}

// StartProcess runs a command and waits until it says where it listens.
func StartProcess(cmd *exec.Cmd) (*Process, error) {
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	var complaints strings.Builder
	if cmd.Stderr == nil {
		cmd.Stderr = &bounded{to: &complaints, left: 64 << 10}
	}
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 20 * time.Second
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &Process{cmd: cmd, in: in}
	line, err := bufio.NewReader(out).ReadBytes('\n')
	var told struct {
		URL string `json:"url"`
	}
	if err == nil {
		err = json.Unmarshal(line, &told)
	}
	if err != nil {
		stopped := p.Stop()
		return nil, errors.Join(fmt.Errorf("%s did not say where it listens: %w\n%s", cmd, err, complaints.String()), stopped)
	}
	p.URL = told.URL
	return p, nil
}

// bounded keeps the first bytes of what is written.
type bounded struct {
	to   io.Writer
	left int
}

func (b *bounded) Write(p []byte) (int, error) {
	n := min(len(p), b.left)
	b.left -= n
	_, err := b.to.Write(p[:n])
	return len(p), err
}

// Stop ends a process, if it was started, and waits for its end.
func (p *Process) Stop() error {
	if p == nil {
		return nil
	}
	_ = p.in.Close() // it may have ended by itself, which Wait reports
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	err := p.cmd.Wait()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.ExitCode() < 0 {
		return nil // it was killed before it could exit cleanly
	}
	return err
}

// Socket returns the process's URL for WebSocket.
func (p *Process) Socket() string { return "ws" + strings.TrimPrefix(p.URL, "http") }

// Metrics reads the hub's metrics that have no labels.
func (p *Process) Metrics(ctx context.Context, names ...string) (map[string]float64, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, p.URL+"/metrics", nil)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close() //nolint:errcheck // only read
	found := map[string]float64{}
	lines := bufio.NewScanner(response.Body)
	for lines.Scan() {
		name, value, _ := strings.Cut(lines.Text(), " ")
		if f, err := strconv.ParseFloat(value, 64); err == nil {
			found[name] = f
		}
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	for _, name := range names {
		if _, ok := found[name]; !ok {
			return nil, fmt.Errorf("%s/metrics answers %s and tells no %s", p.URL, response.Status, name)
		}
	}
	return found, nil
}

// Kill kills a process and waits for its end.
func (p *Process) Kill() {
	_ = p.cmd.Process.Kill() // it may have ended by itself
	_ = p.cmd.Wait()
	_ = p.in.Close()
}
