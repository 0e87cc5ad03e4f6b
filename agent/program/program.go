package program

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/parley-hub/parley/agent"
	"github.com/parley-hub/parley/fault"
)

// Defaults of Options.
const (
	DefaultTimeout = 2 * time.Minute
	DefaultOutput  = 1 << 20
)

// drain is how long pipes are read after every process of a program has been
// ended. Only a process that left the group can hold them open.
const drain = time.Second

// maxStderr bounds what one run passes on of standard error.
const maxStderr = 64 << 10

// Options say how a program runs.
type Options struct {
	// Dir is its working folder; "" is this process's own.
	Dir string
	// Env is its environment; nil is this process's own.
	Env []string
	// Timeout ends a run; 0 is DefaultTimeout.
	Timeout time.Duration
	// Output bounds what a run may print, in bytes; 0 is DefaultOutput.
	Output int
	// Stderr receives what the program prints to standard error, at most 64
	// KiB of each run; nil discards it.
	Stderr io.Writer
}

// Program is a model whose answers a program prints. It is safe for concurrent
// use: each question starts a process of its own.
type Program struct {
	path string
	args []string
	opts Options
	mu   sync.Mutex // of opts.Stderr
}

var _ agent.Model = (*Program)(nil)

// New finds a program. Command is its name or path, and its arguments.
func New(command []string, o Options) (*Program, error) {
	if len(command) == 0 || command[0] == "" {
		return nil, fault.New(fault.Invalid, "there is no command to run")
	}
	path, err := exec.LookPath(command[0])
	if err != nil {
		return nil, fault.Wrap(fault.Invalid, err, "the command cannot be run: %v", err)
	}
	if o.Timeout < 0 || o.Output < 0 {
		return nil, fault.New(fault.Invalid, "timeout and output must not be negative")
	}
	o.Timeout = cmp.Or(o.Timeout, DefaultTimeout)
	o.Output = cmp.Or(o.Output, DefaultOutput)
	return &Program{path: path, args: command[1:], opts: o}, nil
}

// Respond runs the program once.
func (p *Program) Respond(ctx context.Context, prompt *agent.Prompt) (*agent.Response, error) {
	in, err := encodeTurn(prompt)
	if err != nil {
		return nil, err
	}
	out, err := p.run(ctx, in)
	if err != nil {
		return nil, err
	}
	if len(bytes.TrimSpace(out)) == 0 {
		return nil, fault.New(fault.Invalid, `the program printed nothing; print {"text":"..."}, or {} to stay silent`)
	}
	return decodeAnswer(out, prompt)
}

// env returns the beginning of a process's environment.
func (p *Program) env() []string {
	if p.opts.Env == nil {
		return os.Environ()
	}
	return slices.Clip(p.opts.Env)
}

// errOutput ends a run that prints too much.
var errOutput = errors.New("the program printed too much")

// run starts the program, with more in its environment, writes to it and reads
// what it prints. When it returns, every process of the program's group has ended.
func (p *Program) run(ctx context.Context, in []byte, more ...string) ([]byte, error) {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	timed, release := context.WithTimeout(ctx, p.opts.Timeout)
	defer release()

	cmd := exec.CommandContext(timed, p.path, p.args...)
	cmd.Dir, cmd.Env = p.opts.Dir, append(p.env(), more...)
	group, err := newGroup(cmd)
	if err != nil {
		return nil, fault.Wrap(fault.Unavailable, err, "the program cannot be run: %v", err)
	}
	defer group.end()
	cmd.Cancel = func() error {
		group.add(cmd.Process) // Start may not have returned
		group.end()
		return nil
	}

	pipes, err := openPipes(cmd)
	if err != nil {
		return nil, fault.Wrap(fault.Unavailable, err, "the program cannot be run: %v", err)
	}
	if err := cmd.Start(); err != nil {
		pipes.close()
		return nil, fault.Wrap(fault.Unavailable, err, "the program cannot be run: %v", err)
	}
	pipes.closeTheirs()
	group.add(cmd.Process)

	var out bytes.Buffer
	var work sync.WaitGroup
	work.Go(func() {
		_, _ = pipes.stdin.Write(in) // a program need not read its input
		_ = pipes.stdin.Close()
	})
	work.Go(func() {
		if n, _ := io.Copy(&out, io.LimitReader(pipes.stdout, int64(p.opts.Output)+1)); n > int64(p.opts.Output) {
			stop(errOutput)
		}
	})
	work.Go(func() { p.passStderr(pipes.stderr) })

	waited := cmd.Wait()
	group.end()
	read := make(chan struct{})
	go func() { work.Wait(); close(read) }()
	late := time.NewTimer(drain)
	defer late.Stop()
	select {
	case <-read:
	case <-late.C:
	}
	pipes.close()
	<-read
	return out.Bytes(), p.outcome(ctx, timed, waited)
}

// outcome explains how a run ended.
func (p *Program) outcome(ctx, timed context.Context, waited error) error {
	switch {
	case errors.Is(context.Cause(ctx), errOutput):
		return fault.New(fault.TooLarge, "the program printed more than %d bytes, and was ended; print one JSON object, or allow more", p.opts.Output)
	case ctx.Err() != nil:
		return ctx.Err()
	case timed.Err() != nil:
		return fault.New(fault.Unavailable, "the program did not end within %v, and was ended; make it faster, or allow more time", p.opts.Timeout)
	case waited != nil:
		return fault.Wrap(fault.Unavailable, waited, "the program failed: %v; its standard error says why", waited)
	}
	return nil
}

// passStderr passes a bounded part on and reads the rest, so that the program
// never waits.
func (p *Program) passStderr(from io.Reader) {
	var head strings.Builder
	_, _ = io.Copy(&head, io.LimitReader(from, maxStderr))
	if p.opts.Stderr != nil && head.Len() > 0 {
		p.mu.Lock()
		_, _ = io.WriteString(p.opts.Stderr, head.String())
		p.mu.Unlock()
	}
	_, _ = io.Copy(io.Discard, from)
}

// pipes are the three of a process. They are files, so that waiting for the
// process waits for nothing else.
type pipes struct {
	stdin, stdout, stderr *os.File
	theirs                []*os.File
}

func openPipes(cmd *exec.Cmd) (*pipes, error) {
	p := &pipes{}
	theirIn, ourIn, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	p.stdin, p.theirs = ourIn, append(p.theirs, theirIn)
	for _, ours := range []**os.File{&p.stdout, &p.stderr} {
		r, w, err := os.Pipe()
		if err != nil {
			p.close()
			return nil, err
		}
		*ours, p.theirs = r, append(p.theirs, w)
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = p.theirs[0], p.theirs[1], p.theirs[2]
	return p, nil
}

func (p *pipes) closeTheirs() {
	for _, f := range p.theirs {
		_ = f.Close()
	}
	p.theirs = nil
}

func (p *pipes) close() {
	p.closeTheirs()
	for _, f := range []*os.File{p.stdin, p.stdout, p.stderr} {
		if f != nil {
			_ = f.Close() // the writer may have closed stdin already
		}
	}
}
