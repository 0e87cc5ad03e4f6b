package siegebench

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/parley-hub/parley/agent"
	"github.com/parley-hub/parley/client"
	v1 "github.com/parley-hub/parley/client/v1"
	"github.com/parley-hub/parley/identity"
	"github.com/parley-hub/parley/internal/bench"
)

// Attacks of this file end the hub that they meet, so each has a small one of its
// own, after the siege.

// Their counts.
const (
	endPosters = 4
	endPosts   = 400 // of each poster, at most
	// notice is how long a hub may acknowledge after its folder is gone: it checks the
	// store once a second.
	notice = 3 * time.Second
	// closing is the hub's shutdown.timeout, and slack what a busy machine adds.
	closing, slack = time.Second, 15 * time.Second
	endsWithin     = 2 * time.Minute // all of them, on a machine that is busy
	transitions    = 4000            // of an expensive graph
)

// ended are the results of these attacks.
type ended struct {
	AfterRemoval int     `json:"acknowledged_after_removal"` // until the hub noticed
	NoticedIn    float64 `json:"removal_noticed_s"`
	ClosedIn     float64 `json:"sigterm_to_end_s"`
	ClosingPosts int     `json:"posts_in_evaluation_before_sigterm"`
}

// ends runs both attacks.
func (r *run) ends(ctx context.Context) (out ended, err error) {
	if err := r.removed(ctx, &out); err != nil {
		return out, fmt.Errorf("data folder removed under a running hub: %w", err)
	}
	if err := r.terminated(ctx, &out); err != nil {
		return out, fmt.Errorf("SIGTERM during an expensive evaluation: %w", err)
	}
	return out, nil
}

// target is a small hub with two agents in a channel, of which one speaks.
type target struct {
	hub     *bench.Process
	v1      *v1.Client
	clients []*client.Client
	readers sync.WaitGroup
	stop    context.CancelFunc
	speaker string
	channel string
}

func (t *target) send(ctx context.Context, text string) error {
	_, err := t.v1.Send(ctx, t.channel, v1.Posting{Sender: t.speaker, Text: &text})
	return err
}

// leave stops the target's agents.
func (t *target) leave() {
	t.stop()
	for _, c := range t.clients {
		_ = c.Close() // the hub may have ended first
	}
	t.readers.Wait()
}

// small starts a hub for one attack. The caller must call leave, also after an error.
func (r *run) small(ctx context.Context, name, kind string, knobs func(speaker string) string) (t *target, err error) {
	t = &target{}
	reading, stop := context.WithCancel(context.WithoutCancel(ctx))
	t.stop = stop
	dir := filepath.Join(r.Dir, name)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return t, err
	}
	if t.hub, err = bench.StartProcess(r.Hub(ctx, dir, []string{fmt.Sprint("PARLEY_SHUTDOWN_TIMEOUT=", closing)})); err != nil {
		return t, err
	}
	if t.v1, err = v1.New(t.hub.URL, v1.Options{}); err != nil {
		return t, err
	}
	var agents []*client.Identity
	for _, name := range []string{"speaker", "listener"} {
		c, err := client.Dial(ctx, t.hub.Socket(), client.Options{Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			return t, err
		}
		t.clients = append(t.clients, c)
		who, err := c.Register(ctx, client.Registration{Passport: identity.Passport{Name: name}})
		if err != nil {
			return t, err
		}
		agents = append(agents, who)
	}
	t.readers.Go(func() { read(reading, agents[1]) })
	t.speaker = agents[0].ID()
	o := agent.Opening{Type: kind, Participants: []string{agents[1].ID()}, TTL: "0s"}
	if knobs != nil {
		o.Knobs = []byte(knobs(t.speaker))
	}
	m, err := agents[0].OpenChannel(ctx, o)
	if err == nil {
		t.channel = m.ID
	}
	return t, err
}

// flood posts from several agents at once until all were refused or have posted
// everything, and reports each acknowledged post.
func (t *target) flood(ctx context.Context, acknowledged func()) {
	var group sync.WaitGroup
	for range endPosters {
		group.Go(func() {
			for range endPosts {
				if t.send(ctx, "x") != nil {
					return
				}
				acknowledged()
			}
		})
	}
	group.Wait()
}

// removed removes the data folder of a hub that is posted to.
func (r *run) removed(ctx context.Context, out *ended) error {
	t, err := r.small(ctx, "removed", "conversation", nil)
	defer t.leave()
	if t.hub != nil {
		defer t.hub.Kill()
	}
	if err == nil {
		err = t.send(ctx, "x")
	}
	if err != nil {
		return err
	}
	if err := os.RemoveAll(filepath.Join(r.Dir, "removed")); err != nil {
		return err
	}
	began := time.Now()
	pace := time.NewTicker(10 * time.Millisecond)
	defer pace.Stop()
	for time.Since(began) < notice+slack {
		if err = t.send(ctx, "x"); err != nil {
			break
		}
		out.AfterRemoval++
		<-pace.C
	}
	out.NoticedIn = time.Since(began).Seconds()
	if err == nil {
		return fmt.Errorf("%d posts were acknowledged in %.1f s, and none was refused", out.AfterRemoval, out.NoticedIn)
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if t.send(ctx, "x") == nil {
		return errors.New("a post was acknowledged after one was refused")
	}
	return nil
}

// terminated terminates a hub while it evaluates the most expensive graph that it
// accepts.
func (r *run) terminated(ctx context.Context, out *ended) error {
	t, err := r.small(ctx, "terminated", "workflow", expensive)
	defer t.leave()
	stopped := false
	defer func() {
		if t.hub != nil && !stopped {
			t.hub.Kill()
		}
	}()
	if err != nil {
		return err
	}
	var posts atomic.Int64
	first := make(chan struct{})
	var once sync.Once
	var posting sync.WaitGroup
	posting.Go(func() {
		t.flood(ctx, func() { posts.Add(1); once.Do(func() { close(first) }) })
	})
	defer posting.Wait()
	select {
	case <-first:
	case <-time.After(slack):
		return errors.New("no post was accepted: the graph ends the channel, or nobody may speak")
	}
	began := time.Now()
	stopped = true
	if err := t.hub.Stop(); err != nil {
		return err
	}
	out.ClosedIn, out.ClosingPosts = time.Since(began).Seconds(), int(posts.Load())
	if out.ClosedIn > (closing + slack).Seconds() {
		return fmt.Errorf("it took %.1f s; shutdown.timeout is %s", out.ClosedIn, closing)
	}
	return nil
}

// expensive returns a graph whose transitions never match and each examine much.
func expensive(speaker string) string {
	var b strings.Builder
	fmt.Fprintf(&b, `{"graph":{"initial_speaker":%q,"transitions":[`, speaker)
	for i := range transitions {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"when":{"name":"context_equals","args":{"key":"k%d","value":%d}},"then":{"name":"terminate","args":{}}}`, i, i)
	}
	b.WriteString(`],"default_target":{"name":"stay","args":{}}}}`)
	return b.String()
}
