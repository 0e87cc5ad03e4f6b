package wire

import (
	"time"

	"github.com/parley-hub/parley/view/branch"
)

// Events of this file: retries, error policy and compaction.
type (
	// ModelCallRetry reports that a model is called again: partial text is stale.
	ModelCallRetry struct {
		Attempt         int64    `json:"attempt"`
		MaxRetries      int64    `json:"maxRetries"`
		Delay           Duration `json:"delay"`
		ExceptionType   string   `json:"exceptionType"`
		ErrorMessage    string   `json:"errorMessage"`
		Category        *string  `json:"category,omitzero"`
		IsModelNotFound bool     `json:"isModelNotFound"`
		IsRetryable     bool     `json:"isRetryable"`
		Extra
	}

	// FunctionRetry reports that a function is called again.
	FunctionRetry struct {
		FunctionName    string   `json:"functionName"`
		Attempt         int64    `json:"attempt"`
		MaxRetries      int64    `json:"maxRetries"`
		Delay           Duration `json:"delay"`
		ExceptionType   string   `json:"exceptionType"`
		ErrorMessage    string   `json:"errorMessage"`
		Category        *string  `json:"category,omitzero"`
		IsModelNotFound bool     `json:"isModelNotFound"`
		IsRetryable     bool     `json:"isRetryable"`
		Extra
	}

	// InternalRetry reports a retry inside the runtime.
	InternalRetry struct {
		Status        RetryStatus `json:"status,omitzero"`
		AgentName     string      `json:"agentName"`
		FunctionName  string      `json:"functionName"`
		AttemptNumber int64       `json:"attemptNumber"`
		MaxRetries    int64       `json:"maxRetries"`
		ErrorMessage  *string     `json:"errorMessage,omitzero"`
		RetryDelay    *Duration   `json:"retryDelay,omitzero"`
		Extra
	}

	// MiddlewareError reports that a middleware failed.
	MiddlewareError struct {
		SourceName   string `json:"sourceName"`
		ErrorMessage string `json:"errorMessage"`
		Extra
	}

	// MiddlewareProgress reports how far a middleware is.
	MiddlewareProgress struct {
		SourceName      string   `json:"sourceName"`
		Message         string   `json:"message"`
		PercentComplete *float64 `json:"percentComplete,omitzero"`
		Extra
	}

	// CircuitBreakerTriggered reports that a function is no longer called.
	CircuitBreakerTriggered struct {
		AgentName        string `json:"agentName"`
		FunctionName     string `json:"functionName"`
		ConsecutiveCount int64  `json:"consecutiveCount"`
		Iteration        int64  `json:"iteration"`
		Extra
	}

	// MaxConsecutiveErrorsExceeded reports that a turn is aborted.
	MaxConsecutiveErrorsExceeded struct {
		AgentName            string `json:"agentName"`
		ConsecutiveErrors    int64  `json:"consecutiveErrors"`
		MaxConsecutiveErrors int64  `json:"maxConsecutiveErrors"`
		Iteration            int64  `json:"iteration"`
		ErrorMessage         string `json:"errorMessage"`
		Extra
	}

	// TotalErrorThresholdExceeded reports that a turn is aborted.
	TotalErrorThresholdExceeded struct {
		AgentName       string `json:"agentName"`
		TotalErrorCount int64  `json:"totalErrorCount"`
		MaxTotalErrors  int64  `json:"maxTotalErrors"`
		Iteration       int64  `json:"iteration"`
		ErrorMessage    string `json:"errorMessage"`
		Extra
	}

	// PIIDetected reports personal data in a text.
	PIIDetected struct {
		AgentName       string `json:"agentName"`
		PiiType         string `json:"piiType"`
		Strategy        string `json:"strategy"`
		OccurrenceCount int64  `json:"occurrenceCount"`
		Extra
	}

	// Compaction reports what compaction did; it changes no message.
	Compaction struct {
		AgentName             string           `json:"agentName"`
		Iteration             int64            `json:"iteration"`
		Status                CompactionStatus `json:"status,omitzero"`
		Strategy              string           `json:"strategy"`
		OriginalMessageCount  *int64           `json:"originalMessageCount,omitzero"`
		CompactedMessageCount *int64           `json:"compactedMessageCount,omitzero"`
		MessagesRemoved       *int64           `json:"messagesRemoved,omitzero"`
		SummaryContent        *string          `json:"summaryContent,omitzero"`
		SummaryLength         *int64           `json:"summaryLength,omitzero"`
		CacheAge              *Duration        `json:"cacheAge,omitzero"`
		Duration              Duration         `json:"duration"`
		Reason                *string          `json:"reason,omitzero"`
		Extra
	}

	// CompactionCache reports a look into the compaction cache.
	CompactionCache struct {
		AgentName           string    `json:"agentName"`
		IsHit               bool      `json:"isHit"`
		CompactionCreatedAt time.Time `json:"compactionCreatedAt,omitzero"`
		SummarizedUpToIndex *int64    `json:"summarizedUpToIndex,omitzero"`
		CurrentMessageCount int64     `json:"currentMessageCount"`
		TokenSavings        *int64    `json:"tokenSavings,omitzero"`
		Extra
	}
)

// EventType returns the name on the wire.
func (ModelCallRetry) EventType() string { return branch.ModelCallRetry }

// EventType returns the name on the wire.
func (FunctionRetry) EventType() string { return branch.FunctionRetry }

// EventType returns the name on the wire.
func (InternalRetry) EventType() string { return branch.InternalRetry }

// EventType returns the name on the wire.
func (MiddlewareError) EventType() string { return branch.MiddlewareError }

// EventType returns the name on the wire.
func (MiddlewareProgress) EventType() string { return branch.MiddlewareProgress }

// EventType returns the name on the wire.
func (CircuitBreakerTriggered) EventType() string { return branch.CircuitBreakerTriggered }

// EventType returns the name on the wire.
func (MaxConsecutiveErrorsExceeded) EventType() string { return branch.MaxConsecutiveErrorsExceeded }

// EventType returns the name on the wire.
func (TotalErrorThresholdExceeded) EventType() string { return branch.TotalErrorThresholdExceeded }

// EventType returns the name on the wire.
func (PIIDetected) EventType() string { return branch.PIIDetected }

// EventType returns the name on the wire.
func (Compaction) EventType() string { return branch.Compaction }

// EventType returns the name on the wire.
func (CompactionCache) EventType() string { return branch.CompactionCache }
