package hubbench

import (
	"context"
	"errors"
	"path/filepath"
	"time"

	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/hub"
	"github.com/parley-hub/parley/internal/bench"
	"github.com/parley-hub/parley/journal"
)

// replayed is the length of the log that is replayed.
const replayed = 20_000

// replay compares folding a log with reading and decoding it.
func replay(ctx context.Context, o Options) (figures []bench.Figure, err error) {
	s, err := open(ctx, filepath.Join(o.Dir, "replay"), hub.Options{SnapshotAfter: -1})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	id, err := s.channel(ctx, "discussion", nil)
	if err != nil {
		return nil, err
	}
	if err := s.fill(ctx, id, replayed); err != nil {
		return nil, err
	}
	log := journal.PartitionName{Tenant: "main", Partition: "channel/" + id}.In("history", "-")
	read := func(ctx context.Context, d time.Duration) (bench.Sample, error) {
		return repeat(d, func() (int, error) {
			n := 0
			for entry, err := range journal.Records(ctx, s.engine, log, journal.ReadOptions{}) {
				if err != nil {
					return n, err
				}
				if _, err := envelope.Unmarshal(entry.Data); err != nil {
					return n, err
				}
				n++
			}
			return n, nil
		})
	}
	fold := func(ctx context.Context, d time.Duration) (bench.Sample, error) {
		return repeat(d, func() (int, error) {
			s.hub.Evict()
			_, err := s.hub.State(ctx, id)
			return replayed, err
		})
	}
	f, err := bench.Contest{
		Name: "replay: read, decode, fold", Unit: "envelopes/s", Better: bench.Higher, Target: ptr(0.5), Ours: fold, Floor: read,
	}.Run(ctx, o.Plan)
	return []bench.Figure{f}, err
}

// fill lets both agents take turns.
func (s *site) fill(ctx context.Context, channel string, n int) error {
	var last *hub.Pending
	for i := range n {
		sender := s.a
		if i%2 == 1 {
			sender = s.b
		}
		last = s.hub.Admit(ctx, &envelope.Envelope{Channel: channel, Sender: sender, Type: envelope.TypeText, Data: text}, nil)
	}
	_, err := last.Wait(ctx)
	return err
}

// repeat runs a function at least once, and again until the time is over.
func repeat(d time.Duration, run func() (int, error)) (bench.Sample, error) {
	start, total := time.Now(), 0
	for {
		n, err := run()
		if err != nil {
			return bench.Sample{}, err
		}
		total += n
		if elapsed := time.Since(start); elapsed >= d {
			return bench.Sample{Value: float64(total) / elapsed.Seconds()}, nil
		}
	}
}
