package result

import (
	"slices"

	"github.com/parley-hub/parley/message/value"
)

// What every outcome carries.
const (
	OutcomeSchema  = "agents-api.run-outcome"
	OutcomeVersion = 1
)

// Outcomes of a run.
const (
	StatusCompleted          = "completed"
	StatusFailed             = "failed"
	StatusRuntimeToolPending = "runtime_tool_pending"
	StatusApprovalRequired   = "approval_required"
	StatusBudgetExceeded     = "budget_exceeded"
	StatusStalled            = "stalled"
	StatusCancelled          = "cancelled"
	StatusInterrupted        = "interrupted"
	StatusIncomplete         = "incomplete"
)

// Why a run stopped, if its status does not say so.
const (
	StopNatural       = "natural"
	StopMaxTurns      = "max_turns"
	StopProviderError = "provider_error"
)

var (
	outcomeStatuses = []string{
		StatusCompleted, StatusFailed, StatusRuntimeToolPending, StatusApprovalRequired, StatusBudgetExceeded,
		StatusStalled, StatusCancelled, StatusInterrupted, StatusIncomplete,
	}
	// derivedStatuses are copied from a result unchanged.
	derivedStatuses = []string{
		StatusRuntimeToolPending, StatusApprovalRequired, StatusBudgetExceeded,
		StatusStalled, StatusInterrupted, StatusCancelled,
	}
	// finalStatuses end a run for which a retry is useless.
	finalStatuses = []string{StatusRuntimeToolPending, StatusApprovalRequired, StatusCancelled, StatusInterrupted}
)

// Outcome derives the outcome of a run from what the runner reports, which is
// ignored unless it is a container, and from its result.
func Outcome(rawOutcome, runResult any) *value.Map {
	raw := value.MapOrEmpty(value.Of(rawOutcome))
	result := value.MapOrEmpty(value.Of(runResult))
	resultStatus := word(result.At("status"))

	completed := true
	if v, ok := raw.Get("completed"); ok {
		completed = value.Truthy(v)
	} else if v := result.At("completed"); v != nil {
		completed = value.Truthy(v)
	}
	status := word(raw.At("status"))
	if !slices.Contains(outcomeStatuses, status) {
		status = derive(resultStatus, result.At("failure") != nil, completed)
	}
	completed = completed && status == StatusCompleted

	o := value.New().
		Set("schema", OutcomeSchema).
		Set("version", value.Int(OutcomeVersion)).
		Set("status", status).
		Set("completed", completed)
	reason := stopReason(word(raw.At("stop_reason")), resultStatus, word(result.At("budget")), status, completed)
	o.Set("stop_reason", reason)
	if v, ok := raw.Get("retryable"); ok {
		o.Set("retryable", value.Truthy(v))
	} else {
		o.Set("retryable", retryable(resultStatus, status))
	}

	failure := result.At("failure")
	setMap(o, "failure", raw.At("failure"), failure)
	setMap(o, "assertions", raw.At("assertions"))
	if reason != StopProviderError {
		failure = nil
	}
	setMap(o, "provider_error", raw.At("provider_error"), failure)
	setMap(o, "metadata", raw.At("metadata"))
	return o
}

// ControlStatus returns the status of a result or an outcome in run control: an
// incomplete one is still running.
func ControlStatus(outcomeOrResult any) string {
	m := value.MapOrEmpty(value.Of(outcomeOrResult))
	status, _ := Outcome(m.At("run_outcome"), m).At("status").(string)
	if status == StatusIncomplete {
		return RunRunning
	}
	return status
}

func derive(resultStatus string, failed, completed bool) string {
	switch {
	case slices.Contains(derivedStatuses, resultStatus):
		return resultStatus
	case resultStatus == StatusFailed, failed:
		return StatusFailed
	case completed:
		return StatusCompleted
	default:
		return StatusIncomplete
	}
}

func stopReason(raw, resultStatus, budget, status string, completed bool) string {
	switch {
	case raw != "":
		return raw
	case resultStatus == StatusBudgetExceeded && budget == "turns":
		return StopMaxTurns
	case status == StatusFailed:
		return StopProviderError
	case completed:
		return StopNatural
	case resultStatus != "":
		return resultStatus
	default:
		return status
	}
}

func retryable(resultStatus, status string) bool {
	if slices.Contains(finalStatuses, status) {
		return false
	}
	return resultStatus == StatusBudgetExceeded || status == StatusFailed
}

// setMap sets key to the first container, string keys only.
func setMap(o *value.Map, key string, candidates ...any) {
	for _, v := range candidates {
		if value.IsContainer(v) {
			o.Set(key, value.StringKeys(v))
			return
		}
	}
}

// word returns the form in which statuses and reasons are compared.
func word(v any) string { return value.Lower(value.Trim(value.Text(v))) }
