package result

import (
	"slices"

	"github.com/parley-hub/parley/message/value"
)

// What every run result carries.
const (
	RunSchema  = "agents-api/run-result/v1"
	RunVersion = 1
)

// RunRunning is the status of a run that names none we know.
const RunRunning = "running"

var (
	runStatuses = []string{
		"pending", "queued", RunRunning, "cancelling", StatusCancelled, "succeeded", StatusFailed, "skipped",
		StatusCompleted, StatusIncomplete, StatusApprovalRequired, StatusRuntimeToolPending,
		StatusBudgetExceeded, StatusStalled, StatusInterrupted,
	}
	refTexts   = []string{"type", "label", "id", "url", "path", "mime_type", "sha256", "description"}
	timestamps = []string{"started_at", "ended_at", "updated_at"}
)

// Run brings a run result to its envelope, which always has all of its keys.
// Nothing is refused.
func Run(raw any) *value.Map {
	m := value.MapOrEmpty(value.Of(raw))
	outputs := m.At("outputs")
	if outputs == nil {
		outputs = m.At("output")
	}
	status := word(m.At("status"))
	if !slices.Contains(runStatuses, status) {
		status = RunRunning
	}
	return value.New().
		Set("schema", RunSchema).
		Set("version", value.Int(RunVersion)).
		Set("run_id", value.Text(m.At("run_id"))).
		Set("status", status).
		Set("outputs", value.StringKeys(outputs)).
		Set("artifact_refs", refs(m.At("artifact_refs"))).
		Set("evidence_refs", refs(m.At("evidence_refs"))).
		Set("logs", logs(m.At("logs"))).
		Set("replay", value.StringKeys(m.At("replay"))).
		Set("provenance", value.StringKeys(m.At("provenance"))).
		Set("timestamps", times(m)).
		Set("error", value.StringKeys(m.At("error"))).
		Set("cancellation", value.StringKeys(m.At("cancellation"))).
		Set("metadata", value.StringKeys(m.At("metadata")))
}

// refs cleans references: known texts are trimmed, blank ones and references
// that have nothing left are dropped.
func refs(v any) []any {
	cleaned := []any{}
	list, _ := value.Values(v)
	for _, item := range list {
		ref := value.StringKeys(item)
		for _, key := range refTexts {
			if ref.At(key) == nil {
				continue
			}
			if text := value.Trim(value.Text(ref.At(key))); text != "" {
				ref.Set(key, text)
			} else {
				ref.Delete(key)
			}
		}
		if ref.Len() > 0 {
			cleaned = append(cleaned, ref)
		}
	}
	return cleaned
}

func logs(v any) []any {
	cleaned := []any{}
	list, _ := value.Values(v)
	for _, item := range list {
		if entry := value.StringKeys(item); entry.Len() > 0 {
			cleaned = append(cleaned, entry)
		}
	}
	return cleaned
}

// times takes each time from timestamps, else from the top level.
func times(m *value.Map) *value.Map {
	nested := value.StringKeys(m.At("timestamps"))
	cleaned := value.New()
	for _, key := range timestamps {
		v := nested.At(key)
		if v == nil {
			v = m.At(key)
		}
		if text := value.Trim(value.Text(v)); text != "" {
			cleaned.Set(key, text)
		}
	}
	return cleaned
}
