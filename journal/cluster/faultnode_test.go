//go:build unix

package cluster_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/parley-hub/parley/journal"
	"github.com/parley-hub/parley/journal/cluster"
	"github.com/parley-hub/parley/journal/cluster/jetstream"
)

// nodeRole is the environment variable that makes this binary a node in its own
// process, which can be killed and paused. The node reads requests from its standard
// input, one on each line, and answers in any order.

const nodeRole = "PARLEY_TEST_NODE"

type nodeConfig struct{ URL, Cluster, Dir, Node string }

// deed is an operation, or a request to read the copy.
type deed struct {
	On         string // log, claim, value; copy
	Read, Free bool
	Who        int
	Expect     uint64 // sequence or version, as the engine counts
	Known      uint64 // the same in the model
	ID         uint64 // of a write
	Millis     int    // how long to wait for the answer
}

// fate is the result of a deed.
type fate struct {
	How     string // done, refused, none, unknown
	Number  uint64 // sequence, holder or identifier of the value
	Version uint64 // of the value
	Seq     uint64 // of a copy
	Copy    *copied
	Err     string
}

// copied is the exact contents of a copy, as far as the clients write them.
type copied struct {
	Records [][]byte
	Value   []byte
	Version uint64
	Claim   string // its holder
}

type exchange struct {
	Number int
	Deed   deed
	Fate   fate
}

// nodeIfTold runs a node and ends the process, if nodeRole is set.
func nodeIfTold() {
	text := os.Getenv(nodeRole)
	if text == "" {
		return
	}
	var c nodeConfig
	err := json.Unmarshal([]byte(text), &c)
	if err == nil {
		err = c.serve()
	}
	if err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "node:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

func (c *nodeConfig) serve() error {
	log, err := jetstream.Connect(jetstream.Options{URL: c.URL, Cluster: c.Cluster, NATS: []nats.Option{
		nats.IgnoreDiscoveredServers(), nats.RetryOnFailedConnect(true), nats.Timeout(time.Second),
	}})
	if err != nil {
		return err
	}
	e, err := cluster.Open(cluster.Options{Dir: c.Dir, Node: c.Node, Log: log, Shards: 1, Suspect: 1200 * time.Millisecond, Poll: 200 * time.Millisecond})
	if err != nil {
		return err
	}
	var mu sync.Mutex
	out := json.NewEncoder(os.Stdout)
	questions := json.NewDecoder(bufio.NewReader(os.Stdin))
	for {
		var l exchange
		if err := questions.Decode(&l); err != nil {
			return nil //nolint:nilerr // nobody asks any more
		}
		go func() {
			ctx, cancel := context.WithTimeout(context.Background(), time.Duration(l.Deed.Millis)*time.Millisecond)
			defer cancel()
			l.Fate = do(ctx, e, l.Deed)
			mu.Lock()
			defer mu.Unlock()
			_ = out.Encode(l)
		}()
	}
}

// do does a deed. The result is "none" if it had no effect and no valid answer.
func do(ctx context.Context, e *cluster.Engine, d deed) (f fate) {
	none := func(err error) fate { return fate{How: "none", Err: fmt.Sprint(err)} }
	if d.On == "copy" {
		f, err := readCopy(ctx, e)
		if err != nil {
			return none(err)
		}
		return f
	}
	if d.Read {
		f, err := look(ctx, e, d.On)
		if err == nil {
			err = e.Confirm(ctx, 0)
		}
		if err != nil {
			return none(err)
		}
		return f
	}
	b := linearBatch(linearInput{on: d.On, free: d.Free, who: d.Who, expect: d.Expect})
	switch d.On {
	case "log":
		b.Appends[0].Records[0].Data = fmt.Append(nil, d.ID)
	case "value":
		b.Values[0].Data = fmt.Append(nil, d.ID)
	}
	ticket, err := e.Append(ctx, b)
	var conflict *journal.ConflictError
	if errors.As(err, &conflict) {
		f = fate{How: "refused", Number: conflict.Actual}
		if conflict.Kind == journal.ClaimConflict {
			_, _ = fmt.Sscan(conflict.Claim.Log.ID, &f.Number)
		}
		if err = conflict.LostTo.Wait(ctx); err == nil {
			err = e.Confirm(ctx, 0)
		}
		if err == nil {
			return f
		}
	}
	if err != nil {
		return none(err)
	}
	err = ticket.Wait(ctx)
	switch o := ticket.Outcome(); o {
	case journal.Durable:
	case journal.Failed, journal.Aborted:
		return none(err)
	default:
		return fate{How: "unknown", Err: fmt.Sprint(o, err)}
	}
	f.How = "done"
	switch d.On {
	case "log":
		f.Number = ticket.Appended()[0].Last
	case "value":
		f.Number, f.Version = d.ID, ticket.Offset()
	}
	return f
}

// readCopy reads the whole copy. It fails if the copy changes meanwhile.
func readCopy(ctx context.Context, e *cluster.Engine) (fate, error) {
	f := fate{How: "done", Seq: e.Status()[0].Seq, Copy: &copied{}}
	for entry, err := range journal.Records(ctx, e, history, journal.ReadOptions{}) {
		if err != nil {
			return f, err
		}
		f.Copy.Records = append(f.Copy.Records, bytes.Clone(entry.Data))
	}
	value, err := e.Value(ctx, linearValue)
	if err != nil {
		return f, err
	}
	f.Copy.Value, f.Copy.Version = value.Durable.Data, value.Durable.Version
	claim, err := e.Claim(ctx, 0, "linear")
	if err != nil {
		return f, err
	}
	if claim.Durable != nil {
		f.Copy.Claim = claim.Durable.Log.String()
	}
	if e.Status()[0].Seq != f.Seq {
		return f, errors.New("the copy moved on")
	}
	return f, nil
}

func look(ctx context.Context, e *cluster.Engine, on string) (f fate, err error) {
	f.How = "done"
	switch on {
	case "log":
		heads, err := e.Head(ctx, history)
		f.Number = heads.Durable.Seq
		return f, err
	case "value":
		state, err := e.Value(ctx, linearValue)
		f.Version = state.Durable.Version
		if f.Version > 0 {
			_, _ = fmt.Sscan(string(state.Durable.Data), &f.Number)
		}
		return f, err
	}
	state, err := e.Claim(ctx, 0, "linear")
	if state.Durable != nil {
		_, _ = fmt.Sscan(state.Durable.Log.ID, &f.Number)
	}
	return f, err
}

// child is the parent's handle of a node process.
type child struct {
	t      *testing.T
	config nodeConfig

	mu      sync.Mutex
	cmd     *exec.Cmd
	in      io.WriteCloser
	out     *json.Encoder
	next    int
	waiting map[int]chan fate
	gone    chan struct{} // closed when the process has ended
}

// begin starts the process, with the data that it had stored.
func (c *child) begin() {
	c.t.Helper()
	text, err := json.Marshal(c.config)
	if err != nil {
		c.t.Fatal(err)
	}
	cmd := exec.CommandContext(context.Background(), os.Args[0]) //nolint:gosec // itself
	cmd.Env = append(os.Environ(), nodeRole+"="+string(text))
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		c.t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		c.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		c.t.Fatal(err)
	}
	gone, waiting := make(chan struct{}), map[int]chan fate{}
	c.mu.Lock()
	c.cmd, c.in, c.out, c.waiting, c.gone = cmd, in, json.NewEncoder(in), waiting, gone
	c.mu.Unlock()
	go func() {
		defer close(gone)
		answers := json.NewDecoder(bufio.NewReader(out))
		for {
			var l exchange
			if answers.Decode(&l) != nil {
				_ = cmd.Wait()
				return
			}
			c.mu.Lock()
			to := waiting[l.Number]
			delete(waiting, l.Number)
			c.mu.Unlock()
			if to != nil {
				to <- l.Fate
			}
		}
	}()
}

// kill ends the process at once.
func (c *child) kill() {
	c.mu.Lock()
	cmd, gone := c.cmd, c.gone
	c.mu.Unlock()
	_ = cmd.Process.Kill()
	<-gone
	_ = c.in.Close()
}

func (c *child) signal(s syscall.Signal) { _ = c.cmd.Process.Signal(s) }

// pause stops the process, and returns when it has stopped: that takes a moment.
func (c *child) pause() {
	c.t.Helper()
	c.signal(syscall.SIGSTOP)
	var status syscall.WaitStatus
	for {
		_, err := syscall.Wait4(c.cmd.Process.Pid, &status, syscall.WUNTRACED, nil)
		if errors.Is(err, syscall.EINTR) {
			continue
		}
		if err != nil || !status.Stopped() {
			c.t.Fatalf("the node was not paused: %v, %v", status, err)
		}
		return
	}
}

// do sends a deed to the node. If the process ends before it answers, the result is
// unknown.
func (c *child) do(d deed) fate {
	d.Millis = 8000
	answer := make(chan fate, 1)
	c.mu.Lock()
	c.next++
	n, gone := c.next, c.gone
	select {
	case <-gone: // the request was never sent
		c.mu.Unlock()
		return fate{How: "none"}
	default:
	}
	c.waiting[n] = answer
	err := c.out.Encode(exchange{Number: n, Deed: d})
	c.mu.Unlock()
	if err != nil {
		return fate{How: "unknown", Err: err.Error()}
	}
	select {
	case f := <-answer:
		return f
	case <-gone:
		return fate{How: "unknown", Err: "the node ended"}
	}
}
