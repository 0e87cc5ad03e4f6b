package ag2bench

import (
	"context"
	"time"

	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/internal/bench"
)

// pair is two peers in a conversation.
type pair struct {
	poster, reader *peer
	post           []byte
}

func converse(ctx context.Context, url string) (*pair, error) {
	peers, err := joinAll(ctx, url, "pair", 2)
	if err != nil {
		return nil, err
	}
	p := &pair{poster: peers[0], reader: peers[1]}
	channel, err := open("conversation", p.poster, peers[1:])
	if err == nil {
		p.post = p.poster.post(channel, envelope.TypeText, text)
		err = settle(p.poster, p.post, envelope.TypeText, peers[1:])
	}
	if err != nil {
		p.close()
		return nil, err
	}
	return p, nil
}

func (p *pair) close() { closeAll([]*peer{p.poster, p.reader}) }

// once posts and returns how long the delivery to the other peer takes. The next post
// waits for the answer to this one.
func (p *pair) once() (time.Duration, error) {
	began := time.Now()
	if _, err := p.poster.conn.Write(p.post); err != nil {
		return 0, err
	}
	if _, err := p.reader.next(); err != nil {
		return 0, err
	}
	took := time.Since(began)
	payload, err := p.poster.next()
	if err != nil {
		return 0, err
	}
	return took, accepted(payload)
}

// side measures the p50 of a post until the other peer has it, in microseconds.
func (p *pair) side(_ context.Context, d time.Duration) (bench.Sample, error) {
	p.poster.expect(d)
	p.reader.expect(d)
	return latency(d, p.once)
}

// latency repeats an operation until the time is over.
func latency(d time.Duration, once func() (time.Duration, error)) (bench.Sample, error) {
	var took []time.Duration
	for end := time.Now().Add(d); len(took) == 0 || time.Now().Before(end); {
		each, err := once()
		if err != nil {
			return bench.Sample{}, err
		}
		took = append(took, each)
	}
	p50, p99 := bench.Latencies(took)
	return bench.Sample{Value: micros(p50), P50: p50, P99: p99}, nil
}

// delivery compares a post until another connection has it with an echo and a sync.
func (r *run) delivery() ([]bench.Figure, error) {
	p, err := converse(r.ctx, r.hub.Socket())
	if err != nil {
		return nil, err
	}
	defer p.close()
	echo, err := dial(r.ctx, r.echo.URL+echoPath, busyBuffer)
	if err != nil {
		return nil, err
	}
	defer echo.close()
	floor := func(_ context.Context, d time.Duration) (bench.Sample, error) {
		echo.expect(d)
		return latency(d, func() (time.Duration, error) {
			began := time.Now()
			if _, err := echo.conn.Write(p.post); err != nil {
				return 0, err
			}
			if _, err := echo.next(); err != nil {
				return 0, err
			}
			err := r.file.Append(record)
			return time.Since(began), err
		})
	}
	figures, err := r.contest(bench.Contest{
		Name: "post → delivered, one in flight, p50", Unit: "µs", Better: bench.Lower, Target: new(1.35), Ours: p.side, Floor: floor,
	})
	if err != nil {
		return nil, err
	}
	return append(figures, bench.Counted("post → delivered, one in flight, p99", micros(figures[0].P99), "µs", nil)), nil
}
