// Package aghbench measures the AGH dialect. So far that is its codec: what
// validating an envelope costs beside finding that it is JSON at all.
package aghbench

import (
	"context"
	"errors"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-hub/parley/dialect/agh/wire"
	"github.com/parley-hub/parley/internal/bench"
)

// Options of a run.
type Options struct{ bench.Plan }

// maxValidation is how many times the floor validating may take.
const maxValidation = 3.0

// sent is the clock of the sample.
const sent = 1776366000

// sample is a typical envelope: a request with work, an artifact and an
// extension.
const sample = `{"protocol":"agh-network/v0","id":"msg_01jz8f6m6x4f4s8e9b2c3d4e5f","workspace_id":"ws_alpha","kind":"say","channel":"builders",` +
	`"surface":"thread","thread_id":"thread_migration_check_20260416","from":"ops-coordinator.session-42","to":"patch-worker.session-19",` +
	`"work_id":"work_migration_check_20260416","trace_id":"trace_release_20260416","causation_id":"msg_01jz8f5p4q0n3a2b1c9d8e7f6a",` +
	`"ts":1776366000,"expires_at":1776366300,"body":{"text":"Run the migration smoke test against the staging branch and report blockers.",` +
	`"intent":"request","artifacts":[{"type":"git-ref","repo":"github.com/acme/app","ref":"refs/heads/staging"}]},"proof":null,"ext":{"acme.priority":"high"}}`

// Run measures.
func Run(ctx context.Context, o Options) (bench.Report, error) {
	o.Plan = o.WithDefaults()
	report := bench.Report{Bench: "agh", Params: map[string]any{"envelope_bytes": len(sample)}}
	for _, c := range []bench.Contest{
		{Name: "validate an envelope", Target: new(maxValidation), Ours: timed(validate(nil))},
		{Name: "validate an envelope, with the secret scan", Ours: timed(validate(wire.NewSecretScan()))},
	} {
		c.Unit, c.Better, c.Floor = "µs/envelope", bench.Lower, timed(isJSON)
		f, err := c.Run(ctx, o.Plan)
		if err != nil {
			return report, err
		}
		report.Figures = append(report.Figures, f)
	}
	return report, nil
}

var envelope = []byte(sample)

func validate(secrets *wire.SecretScan) func() error {
	return func() error {
		_, err := wire.Decode(envelope, wire.Options{Now: sent, Secrets: secrets})
		return err
	}
}

// isJSON is the floor: the same library, asked only whether it is JSON.
func isJSON() error {
	if !jsontext.Value(envelope).IsValid() {
		return errors.New("the sample is not JSON")
	}
	return nil
}

// batch is how many times something is done between two looks at the clock.
const batch = 64

// timed says how long once takes.
func timed(once func() error) bench.Side {
	return func(ctx context.Context, d time.Duration) (bench.Sample, error) {
		start, n := time.Now(), 0
		for {
			for range batch {
				if err := once(); err != nil {
					return bench.Sample{}, err
				}
			}
			n += batch
			if elapsed := time.Since(start); elapsed >= d || ctx.Err() != nil {
				return bench.Sample{Value: float64(elapsed.Nanoseconds()) / 1000 / float64(n)}, ctx.Err()
			}
		}
	}
}
