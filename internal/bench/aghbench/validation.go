package aghbench

import (
	"errors"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-hub/parley/dialect/agh/wire"
	"github.com/parley-hub/parley/internal/bench"
)

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

// validation compares validating with finding out whether it is JSON.
func (r *run) validation() ([]bench.Figure, error) {
	figure := func(name string, target *float64, secrets *wire.SecretScan) bench.Contest {
		return bench.Contest{
			Name: name, Unit: "µs/envelope", Better: bench.Lower, Target: target,
			Ours: bench.Timed(validate(secrets)), Floor: bench.Timed(isJSON),
		}
	}
	return r.contests(
		figure("validate an envelope", new(maxValidation), nil),
		figure("validate an envelope, with the secret scan", nil, wire.NewSecretScan()),
	)
}

var encoded = []byte(sample)

func validate(secrets *wire.SecretScan) func() error {
	return func() error {
		_, err := wire.Decode(encoded, wire.Options{Now: sent, Secrets: secrets})
		return err
	}
}

// isJSON is the floor: the same library, asked only whether it is JSON.
func isJSON() error {
	if !jsontext.Value(encoded).IsValid() {
		return errors.New("the sample is not JSON")
	}
	return nil
}
