package ag2bench

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/internal/bench"
	"github.com/parley-hub/parley/internal/bench/journalbench"
)

// poster posts the same envelope repeatedly, with several posts in flight.
type poster struct {
	*peer
	each   int    // bytes of a post
	posts  []byte // as many as may be in flight
	sent   []time.Time
	window int
}

func newPoster(p *peer, post []byte, window int) *poster {
	return &poster{peer: p, each: len(post), posts: bytes.Repeat(post, window), window: window}
}

// pump keeps the window of posts full until the time is over, then waits for every
// answer.
func (p *poster) pump(d time.Duration) (took []time.Duration, err error) {
	p.expect(d)
	end := time.Now().Add(d)
	if err := p.send(p.window); err != nil {
		return nil, err
	}
	for len(p.sent) > 0 {
		answers := 0
		for answers == 0 || p.waits() {
			payload, err := p.next()
			if err == nil {
				err = accepted(payload)
			}
			if err != nil {
				return nil, err
			}
			answers++
		}
		now := time.Now()
		for _, at := range p.sent[:answers] {
			took = append(took, now.Sub(at))
		}
		p.sent = append(p.sent[:0], p.sent[answers:]...)
		if now.Before(end) {
			if err := p.send(answers); err != nil {
				return nil, err
			}
		}
	}
	return took, nil
}

func (p *poster) send(n int) error {
	now := time.Now()
	for range n {
		p.sent = append(p.sent, now)
	}
	_, err := p.conn.Write(p.posts[:n*p.each])
	return err
}

// accepted checks an answer without decoding all of it, so that the driver is not the
// bottleneck.
func accepted(payload []byte) error {
	if bytes.Contains(payload, []byte(`"ok":true`)) || bytes.Contains(payload, []byte(`"ok": true`)) {
		return nil
	}
	return fmt.Errorf("a post was not accepted: %.300q", payload)
}

// posters are many connections, each with a conversation whose other participant is not
// connected.
type posters []*poster

func (r *run) posters(url string) (list posters, err error) {
	for i := range r.Connections {
		p, err := lonely(r.ctx, url, i, r.InFlight)
		if err != nil {
			list.close()
			return nil, err
		}
		list = append(list, p)
	}
	return list, nil
}

func lonely(ctx context.Context, url string, i, window int) (*poster, error) {
	from, err := join(ctx, url, named("poster", i))
	if err != nil {
		return nil, err
	}
	to, err := join(ctx, url, named("away", i))
	if err != nil {
		from.close()
		return nil, err
	}
	defer to.close()
	channel, err := open("conversation", from, []*peer{to})
	if err == nil {
		post := from.post(channel, envelope.TypeText, text)
		if err = settle(from, post, envelope.TypeText, []*peer{to}); err == nil {
			return newPoster(from, post, window), nil
		}
	}
	from.close()
	return nil, err
}

func (list posters) close() {
	for _, p := range list {
		p.close()
	}
}

// side measures the rate of admissions of all connections together.
func (list posters) side(_ context.Context, d time.Duration) (bench.Sample, error) {
	var mu sync.Mutex
	var all []time.Duration
	var failed error
	var group sync.WaitGroup
	began := time.Now()
	for _, p := range list {
		group.Go(func() {
			took, err := p.pump(d)
			mu.Lock()
			defer mu.Unlock()
			all, failed = append(all, took...), cmp.Or(failed, err) // as a rule they all say the same
		})
	}
	group.Wait()
	elapsed := time.Since(began)
	if failed != nil {
		return bench.Sample{}, failed
	}
	p50, p99 := bench.Latencies(all)
	return bench.Sample{Value: float64(len(all)) / elapsed.Seconds(), P50: p50, P99: p99}, nil
}

// admissions compares pipelined posts with appends to the journal's floor, with equally
// many in flight. A second figure leaves out admission and storage: it shows what the
// protocol alone costs.
func (r *run) admissions() ([]bench.Figure, error) {
	list, err := r.posters(r.hub.Socket())
	if err != nil {
		return nil, err
	}
	defer list.close()
	idle, err := r.answered()
	if err != nil {
		return nil, err
	}
	defer idle.close()
	floor := func(ctx context.Context, d time.Duration) (bench.Sample, error) {
		return journalbench.Load(ctx, d, r.Connections*r.InFlight, func(context.Context, int, int) error { return r.file.Append(record) })
	}
	// The floor is a server that reads, decodes and answers the same posts, and
	// neither admits nor stores them: a bare file costs 1 µs a record, which
	// leaves no room for any of that.
	figures, err := r.contest(bench.Contest{
		Name: fmt.Sprintf("pipelined admissions, %d × %d", r.Connections, r.InFlight),
		Unit: "1/s", Better: bench.Higher, Target: new(0.5), Ours: list.side, Floor: idle.side,
	})
	if err != nil {
		return nil, err
	}
	more, err := r.contest(bench.Contest{
		Name: "the same posts, decoded and answered only, against a group-committed file",
		Unit: "1/s", Better: bench.Higher, Ours: idle.side, Floor: floor,
	})
	return append(figures, more...), err
}

// answered returns posters that write to a server which stores nothing.
func (r *run) answered() (list posters, err error) {
	for range r.Connections {
		p, err := dial(r.ctx, r.echo.URL+answerPath, busyBuffer)
		if err != nil {
			list.close()
			return nil, err
		}
		p.id = requestID
		list = append(list, newPoster(p, p.post(requestID, envelope.TypeText, text), r.InFlight))
	}
	return list, nil
}
