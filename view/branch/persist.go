package branch

import (
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/parley-hub/parley/fault"
)

// Persistence is whether events of a type reach the history.
type Persistence uint8

// Persistence of the types.
const (
	Live Persistence = iota + 1
	Durable
	// WhenMeaningful: terminal and meaningful statuses, not mere polling.
	WhenMeaningful
	// OnFailure: only the one record that the server writes when a turn fails.
	OnFailure
	// OnHardRetention: only where compaction removes messages for good.
	OnHardRetention
	// The rest is live unless a setting stores it.
	RequestPolicy
	TranscriptPolicy
	WorkflowPolicy
	ContentPolicy
)

var persistenceNames = []string{
	"", "live", "durable", "durable when terminal or meaningful", "live; one record for a failed turn",
	"durable with hard retention", "live; durable with hpd.persist.requests", "live; durable with hpd.persist.audio_transcripts",
	"live; durable with hpd.persist.workflow", "live; durable with hpd.persist.content",
}

func (p Persistence) String() string { return nameOf(persistenceNames, int(p)) }

// Policy is which live types a hub stores as well. The zero value stores none.
type Policy struct {
	Requests    bool
	Workflow    bool
	Content     bool
	Transcripts Transcripts
}

// Transcripts is how much of a user's audio transcript is stored. Raw audio
// never is.
type Transcripts uint8

// Settings of Transcripts.
const (
	NoTranscripts Transcripts = iota
	FinalTranscripts
	AllTranscripts
)

var transcriptNames = []string{"off", "final", "all"}

func (t Transcripts) String() string { return nameOf(transcriptNames, int(t)) }

// ParseTranscripts reads the setting.
func ParseTranscripts(name string) (Transcripts, error) {
	for i, known := range transcriptNames {
		if name == known {
			return Transcripts(i), nil
		}
	}
	return 0, fault.New(fault.Invalid, "audio transcripts are stored %q; write off, final or all", name)
}

// Durable reports whether an event that a producer publishes, or that the
// server makes, belongs in the history. Unknown types never do. The payload is
// read only where the type leaves it open.
func (t *Table) Durable(name string, payload []byte, server bool) bool {
	row, ok := t.rows[name]
	if !ok {
		return false
	}
	switch row.Persistence {
	case Durable, OnHardRetention:
		return true
	case WhenMeaningful:
		return meaningful(payload)
	case OnFailure:
		return server
	case RequestPolicy:
		return t.Policy.Requests
	case WorkflowPolicy:
		return t.Policy.Workflow
	case ContentPolicy:
		return t.Policy.Content
	case TranscriptPolicy:
		return t.Policy.Transcripts == AllTranscripts || t.Policy.Transcripts == FinalTranscripts && name == UserAudioTranscriptCompleted
	}
	return false
}

// polling begins the message of a status that only says it is still waiting.
const polling = "polling attempt "

// meaningful reports whether a background operation's status is worth keeping.
func meaningful(payload []byte) bool {
	var status struct {
		Status  string `json:"status"`
		Message string `json:"statusMessage"`
	}
	if json.Unmarshal(payload, &status) != nil {
		return false
	}
	switch strings.ToLower(status.Status) {
	case "completed", "failed", "cancelled":
		return true
	}
	text := strings.TrimSpace(status.Message)
	return text != "" && !strings.HasPrefix(strings.ToLower(status.Message), polling)
}

func indexFold(names []string, name string) (int, bool) {
	for i := 1; i < len(names); i++ {
		if strings.EqualFold(names[i], name) {
			return i, true
		}
	}
	return 0, false
}
