package aghbench

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/dialect/agh/wire"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/hub"
	"github.com/parley-hub/parley/internal/bench"
)

// inFlight is how many messages of one remote sender may be not durable yet. Over NATS
// nobody waits for an answer, and more messages would be dropped.
const inFlight = 16

// remotes are senders outside the hub. Each has a connection, a thread and a hosted
// peer that it writes to.
type remotes struct {
	hub.NoopListener
	list []*remote
}

type remote struct {
	conn    *nats.Conn
	subject string
	index   int
	sent    int
	free    chan struct{} // one for each message that may be on its way
}

func (r *run) remotes(s *site) (*remotes, error) {
	all := &remotes{list: make([]*remote, r.Senders)}
	for i := range all.list {
		target := fmt.Sprintf("target.t%02d", i)
		if _, err := s.join(r.ctx, target); err != nil {
			return nil, err
		}
		conn, err := nats.Connect(s.nats, nats.Token(token))
		if err != nil {
			return nil, err
		}
		subject, err := wire.PeerSubject(0, workspace, dock, target)
		if err != nil {
			return nil, err
		}
		one := &remote{conn: conn, subject: subject, index: i, free: make(chan struct{}, inFlight)}
		for range inFlight {
			one.free <- struct{}{}
		}
		all.list[i] = one
	}
	s.hub.Listen(all)
	return all, nil
}

func (all *remotes) close() {
	for _, one := range all.list {
		one.conn.Close()
	}
}

// EnvelopePosted is called when an envelope is durable, and lets its sender continue.
func (all *remotes) EnvelopePosted(e *envelope.Envelope, _ *channel.Metadata) {
	who, _, ok := strings.Cut(strings.TrimPrefix(e.Origin.ID, idPrefix), "-")
	if !ok || !strings.HasPrefix(e.Origin.ID, idPrefix) {
		return
	}
	if i, err := strconv.Atoi(who); err == nil && i < len(all.list) {
		all.list[i].free <- struct{}{}
	}
}

const idPrefix = "bench-"

var errLost = errors.New("a message did not become durable within 30 s")

// send lets all remotes send until the time is over, and returns when everything is
// durable.
func (all *remotes) send(ctx context.Context, d time.Duration) (bench.Sample, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, d+30*time.Second, errLost)
	defer cancel()
	var wg sync.WaitGroup
	counts, errs := make([]int, len(all.list)), make([]error, len(all.list))
	start := time.Now()
	for i, one := range all.list {
		wg.Go(func() { counts[i], errs[i] = one.send(ctx, start.Add(d)) })
	}
	wg.Wait()
	took := time.Since(start)
	n := 0
	for _, c := range counts {
		n += c
	}
	return bench.Sample{Value: float64(n) / took.Seconds()}, errors.Join(errs...)
}

func (one *remote) send(ctx context.Context, until time.Time) (n int, err error) {
	take := func() error {
		select {
		case <-one.free:
			return nil
		default:
		}
		if err := one.conn.FlushWithContext(ctx); err != nil { // nothing more follows at once
			return err
		}
		select {
		case <-one.free:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	for time.Now().Before(until) || n == 0 {
		if err := take(); err != nil {
			return n, err
		}
		one.sent++
		if err := one.conn.Publish(one.subject, one.envelope()); err != nil {
			return n, err
		}
		n++
	}
	for range inFlight {
		if err := take(); err != nil {
			return n, err
		}
	}
	for range inFlight {
		one.free <- struct{}{}
	}
	return n, nil
}

func (one *remote) envelope() []byte {
	return fmt.Appendf(nil, `{"protocol":%q,"id":"%s%d-%d","workspace_id":%q,"kind":"say","channel":%q,"surface":"thread","thread_id":"thread_nats_%02d",`+
		`"from":"remote.r%02d","to":"target.t%02d","ts":%d,"body":{"text":%q},"proof":null}`,
		wire.Protocol, idPrefix, one.index, one.sent, workspace, dock, one.index, one.index, one.index, time.Now().Unix(), text)
}
