package journalbench

import (
	"context"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"os"
	"time"

	"github.com/parley-hub/parley/internal/bench"
	"github.com/parley-hub/parley/journal"
	"github.com/parley-hub/parley/journal/disk"
)

// claimWriters is the number of writers that the figure for claims uses.
const claimWriters = 64

// claims compares appends that each take a fresh claim with appends that take
// none, on the same store. The claims expire after a day, as the hub's
// idempotency keys do.
func (r *run) claims() ([]bench.Figure, error) {
	e, err := disk.Open(r.path("claims"), disk.Options{})
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(r.path("claims")) //nolint:errcheck // temporary
	f, err := r.claimFigure(e)
	if closeErr := e.Close(); err == nil {
		err = closeErr
	}
	return []bench.Figure{f}, err
}

func (r *run) claimFigure(e *disk.Engine) (bench.Figure, error) {
	if err := fill(r.ctx, e, "warm", 64, r.opts.scaled(160_000), 8, recordLen, r.data); err != nil {
		return bench.Figure{}, err
	}
	if err := r.fillClaims(e, r.opts.scaled(200_000)); err != nil {
		return bench.Figure{}, err
	}
	plain := appender(e, "plain", r.data, claimWriters)
	claiming := claimer(e, r.data, claimWriters)
	return bench.Contest{
		Name: fmt.Sprintf("appends with a fresh claim / without, %d writers", claimWriters), Unit: "1/s",
		Better: bench.Higher, Target: new(0.7),
		Ours: func(ctx context.Context, d time.Duration) (bench.Sample, error) {
			return load(ctx, d, claimWriters, claiming)
		},
		Floor: func(ctx context.Context, d time.Duration) (bench.Sample, error) {
			return load(ctx, d, claimWriters, plain)
		},
	}.Run(r.ctx, r.opts.Plan)
}

// fillClaims takes claims in large batches, so that lookups meet a store that
// has many.
func (r *run) fillClaims(e journal.Engine, n int) error {
	names := newClaimNames(0)
	var last *journal.Ticket
	for n > 0 {
		a := journal.Append{Log: partition.In("claims", "warm")}
		for range min(n, journal.MaxBatchRecords) {
			a.Records = append(a.Records, names.record(r.data[0][:16]))
		}
		n -= len(a.Records)
		ticket, err := e.Append(r.ctx, journal.Batch{Appends: []journal.Append{a}})
		if err != nil {
			return err
		}
		last = ticket
	}
	return last.Wait(r.ctx)
}

// claimer writes to an engine as appender does, and takes a fresh claim with
// each record.
func claimer(e journal.Engine, data [][]byte, writers int) func(ctx context.Context, writer, i int) error {
	logs := make([]journal.LogName, writers)
	names := make([]*claimNames, writers)
	for i := range logs {
		logs[i], names[i] = partition.In("claiming", fmt.Sprint(i)), newClaimNames(uint64(i)+1)
	}
	return func(ctx context.Context, writer, i int) error {
		ticket, err := e.Append(ctx, journal.Batch{Appends: []journal.Append{{
			Log: logs[writer], Records: []journal.Record{names[writer].record(data[i%len(data)])},
		}}})
		if err != nil {
			return err
		}
		return ticket.Wait(ctx)
	}
}

// claimNames makes names that never repeat and have no order, as digests do.
type claimNames struct{ source *rand.PCG }

func newClaimNames(seed uint64) *claimNames { return &claimNames{rand.NewPCG(seed, 1)} }

func (c *claimNames) record(data []byte) journal.Record {
	var b [16]byte
	for i := range b {
		b[i] = byte(c.source.Uint64() >> 32)
	}
	return journal.Record{Data: data, Take: []journal.Take{{
		Name: "key/" + hex.EncodeToString(b[:]), Expires: time.Now().Add(24 * time.Hour),
	}}}
}
