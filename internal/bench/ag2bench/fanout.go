package ag2bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/parley-hub/parley/internal/bench"
)

// note is the event type of the fan-out. In a discussion it does not count as a turn.
const note = "app.note"

// audience are connections that read all the time and count deliveries.
type audience struct {
	readers []*reader
	group   sync.WaitGroup
}

type reader struct {
	*peer
	got   atomic.Int64
	bytes atomic.Int64  // of the last message
	moved chan struct{} // has an element after something was read
	err   atomic.Pointer[error]
}

func listen(peers []*peer) *audience {
	a := &audience{}
	for _, p := range peers {
		r := &reader{peer: p, moved: make(chan struct{}, 1)}
		_ = p.conn.SetReadDeadline(time.Time{}) // waiting is what it does
		a.readers = append(a.readers, r)
		a.group.Go(r.read)
	}
	return a
}

func (r *reader) read() {
	for {
		payload, err := r.next()
		if err != nil {
			r.err.Store(&err)
			close(r.moved)
			return
		}
		r.bytes.Store(int64(len(payload)))
		r.got.Add(1)
		if !r.waits() {
			select {
			case r.moved <- struct{}{}:
			default:
			}
		}
	}
}

// wait waits until every reader has so many deliveries more than before.
func (a *audience) wait(had []int64, more int64) error {
	late := time.NewTimer(patience)
	defer late.Stop()
	for i, r := range a.readers {
		for r.got.Load() < had[i]+more {
			select {
			case <-r.moved:
				if err := r.err.Load(); err != nil {
					return *err
				}
			case <-late.C:
				return fmt.Errorf("reader %d of %d has %d of %d deliveries", i+1, len(a.readers), r.got.Load()-had[i], more)
			}
		}
	}
	return nil
}

func (a *audience) had() []int64 {
	list := make([]int64, len(a.readers))
	for i, r := range a.readers {
		list[i] = r.got.Load()
	}
	return list
}

func (a *audience) close() {
	for _, r := range a.readers {
		r.peer.close()
	}
	a.group.Wait()
}

// rate runs a function that sends messages to every reader, and returns how many were
// received per second.
func (a *audience) rate(send func() (int64, error)) (bench.Sample, error) {
	had, began := a.had(), time.Now()
	n, err := send()
	if err == nil {
		err = a.wait(had, n)
	}
	if err != nil {
		return bench.Sample{}, err
	}
	return bench.Sample{Value: float64(n) * float64(len(a.readers)) / time.Since(began).Seconds()}, nil
}

// talk is a discussion with one speaker and many readers.
type talk struct {
	poster   *poster
	audience *audience
}

func (r *run) talk(url string) (*talk, error) {
	peers, err := joinAll(r.ctx, url, "talk", r.Readers+1)
	if err != nil {
		return nil, err
	}
	channel, err := open("discussion", peers[0], peers[1:])
	if err != nil {
		closeAll(peers)
		return nil, err
	}
	post := peers[0].post(channel, note, text)
	if err := settle(peers[0], post, note, peers[1:]); err != nil {
		closeAll(peers)
		return nil, err
	}
	return &talk{newPoster(peers[0], post, saturating), listen(peers[1:])}, nil
}

func (t *talk) close() {
	t.poster.close()
	t.audience.close()
}

func (t *talk) side(_ context.Context, d time.Duration) (bench.Sample, error) {
	return t.audience.rate(func() (int64, error) {
		took, err := t.poster.pump(d)
		return int64(len(took)), err
	})
}

// fanOut compares deliveries with a loop that writes as many bytes to each
// reader, and counts the hub's writes.
func (r *run) fanOut() (figures []bench.Figure, err error) {
	t, err := r.talk(r.hub.Socket())
	if err != nil {
		return nil, err
	}
	defer t.close()
	if _, err := t.side(r.ctx, 0); err != nil { // to know a delivery's size
		return nil, err
	}
	l, err := r.loop(int(t.audience.readers[0].bytes.Load()))
	if err != nil {
		return nil, err
	}
	defer l.close()
	const writes, deliveries = "parley_ag2_writes_total", "parley_ag2_deliveries_total"
	before, err := r.hub.Metrics(r.ctx, writes, deliveries)
	if err != nil {
		return nil, err
	}
	figures, err = r.contest(bench.Contest{
		Name: fmt.Sprintf("fan-out 1 → %d", r.Readers), Unit: "deliveries/s", Better: bench.Higher, Target: new(3.0), Ours: t.side, Floor: l.side,
	})
	if err != nil {
		return nil, err
	}
	after, err := r.hub.Metrics(r.ctx, writes, deliveries)
	if err != nil {
		return nil, err
	}
	each := (after[writes] - before[writes]) / (after[deliveries] - before[deliveries])
	return append(figures, bench.Counted("writes for each delivery, saturated", each, "writes", new(0.1))), nil
}

// loop is the floor's fan-out: the process that writes, and the readers.
type loop struct {
	control  *peer
	audience *audience
	size     int
}

func (r *run) loop(size int) (*loop, error) {
	l := &loop{size: size}
	var peers []*peer
	for range r.Readers {
		p, err := dial(r.ctx, r.echo.URL+readPath, busyBuffer)
		if err != nil {
			closeAll(peers)
			return nil, err
		}
		peers = append(peers, p)
	}
	var err error
	if l.control, err = dial(r.ctx, r.echo.URL+loopPath, busyBuffer); err != nil {
		closeAll(peers)
		return nil, err
	}
	l.audience = listen(peers)
	return l, nil
}

func (l *loop) close() {
	l.control.close()
	l.audience.close()
}

func (l *loop) side(_ context.Context, d time.Duration) (bench.Sample, error) {
	return l.audience.rate(func() (int64, error) {
		l.control.expect(d)
		order, err := json.Marshal(loopOrder{For: d, Bytes: l.size, Readers: len(l.audience.readers)})
		if err != nil {
			return 0, err
		}
		if _, err := l.control.conn.Write(message(order)); err != nil {
			return 0, err
		}
		payload, err := l.control.next()
		if err != nil {
			return 0, err
		}
		var done loopDone
		if err := json.Unmarshal(payload, &done); err != nil {
			return 0, err
		}
		if done.Err != "" {
			return 0, errors.New(done.Err)
		}
		return done.Messages, nil
	})
}
