package wire

import (
	"github.com/parley-hub/parley/view/branch"
)

// Events of this file: spoken output.
type (
	// AssistantAudioOutputStarted begins an output flow.
	AssistantAudioOutputStarted struct {
		OutputFlowID string  `json:"outputFlowId" need:"true"`
		ResponseID   string  `json:"responseId"`
		ProviderKey  string  `json:"providerKey"`
		ModelID      *string `json:"modelId,omitzero"`
		VoiceID      *string `json:"voiceId,omitzero"`
		Language     *string `json:"language,omitzero"`
		OutputFormat *string `json:"outputFormat,omitzero"`
		Extra
	}

	// AssistantAudioOutputStreamStarted begins a segment.
	AssistantAudioOutputStreamStarted struct {
		OutputFlowID    string  `json:"outputFlowId" need:"true"`
		ResponseID      string  `json:"responseId"`
		SegmentID       string  `json:"segmentId"`
		SegmentSequence int64   `json:"segmentSequence"`
		ProviderKey     string  `json:"providerKey"`
		ModelID         *string `json:"modelId,omitzero"`
		VoiceID         *string `json:"voiceId,omitzero"`
		Language        *string `json:"language,omitzero"`
		OutputFormat    *string `json:"outputFormat,omitzero"`
		MediaType       string  `json:"mediaType"`
		PayloadKind     string  `json:"payloadKind"`
		Extra
	}

	// AssistantAudioOutputChunkReady reports a chunk.
	AssistantAudioOutputChunkReady struct {
		OutputFlowID    string    `json:"outputFlowId" need:"true"`
		ResponseID      string    `json:"responseId"`
		SegmentID       string    `json:"segmentId"`
		SegmentSequence int64     `json:"segmentSequence"`
		ChunkSequence   int64     `json:"chunkSequence"`
		ProviderKey     string    `json:"providerKey"`
		ModelID         *string   `json:"modelId,omitzero"`
		VoiceID         *string   `json:"voiceId,omitzero"`
		Language        *string   `json:"language,omitzero"`
		OutputFormat    *string   `json:"outputFormat,omitzero"`
		MediaType       string    `json:"mediaType"`
		SizeBytes       int64     `json:"sizeBytes"`
		Duration        *Duration `json:"duration,omitzero"`
		IsFinalChunk    bool      `json:"isFinalChunk"`
		PayloadKind     string    `json:"payloadKind"`
		Extra
	}

	// AssistantAudioPushTextStreamOpening opens push-text synthesis.
	AssistantAudioPushTextStreamOpening struct {
		OutputFlowID         string  `json:"outputFlowId" need:"true"`
		ResponseID           string  `json:"responseId"`
		ProviderKey          string  `json:"providerKey"`
		ModelID              *string `json:"modelId,omitzero"`
		VoiceID              *string `json:"voiceId,omitzero"`
		Language             *string `json:"language,omitzero"`
		OutputFormat         *string `json:"outputFormat,omitzero"`
		InputAggregationMode string  `json:"inputAggregationMode"`
		Extra
	}

	// AssistantAudioPushTextStreamOpened reports that push-text synthesis is open.
	AssistantAudioPushTextStreamOpened struct {
		OutputFlowID         string  `json:"outputFlowId" need:"true"`
		ResponseID           string  `json:"responseId"`
		ProviderKey          string  `json:"providerKey"`
		ModelID              *string `json:"modelId,omitzero"`
		VoiceID              *string `json:"voiceId,omitzero"`
		Language             *string `json:"language,omitzero"`
		OutputFormat         *string `json:"outputFormat,omitzero"`
		InputAggregationMode string  `json:"inputAggregationMode"`
		Extra
	}

	// AssistantAudioPushTextInputSent reports text sent to synthesis.
	AssistantAudioPushTextInputSent struct {
		OutputFlowID         string `json:"outputFlowId" need:"true"`
		ResponseID           string `json:"responseId"`
		SourceTextStart      int64  `json:"sourceTextStart"`
		SourceTextLength     int64  `json:"sourceTextLength"`
		IsFinalInput         bool   `json:"isFinalInput"`
		InputAggregationMode string `json:"inputAggregationMode"`
		Extra
	}

	// AssistantAudioOutputStreamCompleted ends a segment.
	AssistantAudioOutputStreamCompleted struct {
		OutputFlowID    string    `json:"outputFlowId" need:"true"`
		ResponseID      string    `json:"responseId"`
		SegmentID       string    `json:"segmentId"`
		SegmentSequence int64     `json:"segmentSequence"`
		Disposition     string    `json:"disposition"`
		ChunkCount      int64     `json:"chunkCount"`
		SizeBytes       int64     `json:"sizeBytes"`
		Duration        *Duration `json:"duration,omitzero"`
		Extra
	}

	// AssistantAudioOutputArtifactCaptured reports output kept as an artifact.
	AssistantAudioOutputArtifactCaptured struct {
		OutputFlowID    string    `json:"outputFlowId" need:"true"`
		ResponseID      string    `json:"responseId"`
		SegmentID       string    `json:"segmentId"`
		SegmentSequence int64     `json:"segmentSequence"`
		MediaType       string    `json:"mediaType"`
		Artifact        Artifact  `json:"artifact"`
		SizeBytes       *int64    `json:"sizeBytes,omitzero"`
		Sha256          *string   `json:"sha256,omitzero"`
		Duration        *Duration `json:"duration,omitzero"`
		Extra
	}

	// AssistantAudioOutputSegmentFailed ends a segment that failed.
	AssistantAudioOutputSegmentFailed struct {
		OutputFlowID    string  `json:"outputFlowId" need:"true"`
		ResponseID      string  `json:"responseId"`
		SegmentID       string  `json:"segmentId"`
		SegmentSequence int64   `json:"segmentSequence"`
		ProviderKey     string  `json:"providerKey"`
		ModelID         *string `json:"modelId,omitzero"`
		VoiceID         *string `json:"voiceId,omitzero"`
		Language        *string `json:"language,omitzero"`
		OutputFormat    *string `json:"outputFormat,omitzero"`
		Error           Raw     `json:"error,omitzero"`
		Disposition     string  `json:"disposition"`
		IsFinal         bool    `json:"isFinal"`
		Extra
	}

	// AssistantAudioOutputCompleted ends an output flow.
	AssistantAudioOutputCompleted struct {
		OutputFlowID string `json:"outputFlowId" need:"true"`
		ResponseID   string `json:"responseId"`
		Disposition  string `json:"disposition"`
		SegmentCount int64  `json:"segmentCount"`
		Played       bool   `json:"played"`
		HeardByUser  bool   `json:"heardByUser"`
		Extra
	}

	// AssistantAudioOutputFailed ends an output flow that failed.
	AssistantAudioOutputFailed struct {
		OutputFlowID string  `json:"outputFlowId" need:"true"`
		ResponseID   string  `json:"responseId"`
		ProviderKey  string  `json:"providerKey"`
		ModelID      *string `json:"modelId,omitzero"`
		VoiceID      *string `json:"voiceId,omitzero"`
		Language     *string `json:"language,omitzero"`
		OutputFormat *string `json:"outputFormat,omitzero"`
		Error        Raw     `json:"error,omitzero"`
		Disposition  string  `json:"disposition"`
		Extra
	}

	// AssistantAudioPlaybackQueued reports queued playback.
	AssistantAudioPlaybackQueued struct {
		OutputFlowID    string `json:"outputFlowId" need:"true"`
		ResponseID      string `json:"responseId"`
		SegmentID       string `json:"segmentId"`
		SegmentSequence int64  `json:"segmentSequence"`
		MediaType       string `json:"mediaType"`
		Played          bool   `json:"played"`
		HeardByUser     bool   `json:"heardByUser"`
		Extra
	}

	// AssistantAudioPlaybackStarted reports that playback began.
	AssistantAudioPlaybackStarted struct {
		OutputFlowID    string  `json:"outputFlowId" need:"true"`
		ResponseID      string  `json:"responseId"`
		SegmentID       *string `json:"segmentId,omitzero"`
		SegmentSequence int64   `json:"segmentSequence"`
		MediaType       string  `json:"mediaType"`
		Extra
	}

	// AssistantAudioPlaybackProgress reports how far playback is.
	AssistantAudioPlaybackProgress struct {
		OutputFlowID     string   `json:"outputFlowId" need:"true"`
		ResponseID       string   `json:"responseId"`
		SegmentID        *string  `json:"segmentId,omitzero"`
		SegmentSequence  int64    `json:"segmentSequence"`
		PlayedDuration   Duration `json:"playedDuration"`
		PlayedTextLength int64    `json:"playedTextLength"`
		Precision        string   `json:"precision"`
		Played           bool     `json:"played"`
		HeardByUser      bool     `json:"heardByUser"`
		Extra
	}

	// AssistantAudioPlaybackCompleted reports that playback ended.
	AssistantAudioPlaybackCompleted struct {
		OutputFlowID     string   `json:"outputFlowId" need:"true"`
		ResponseID       string   `json:"responseId"`
		SegmentID        *string  `json:"segmentId,omitzero"`
		SegmentSequence  int64    `json:"segmentSequence"`
		MediaType        string   `json:"mediaType"`
		Played           bool     `json:"played"`
		HeardByUser      bool     `json:"heardByUser"`
		Duration         Duration `json:"duration"`
		PlayedTextLength int64    `json:"playedTextLength"`
		Precision        string   `json:"precision"`
		Extra
	}

	// AssistantAudioPlaybackInterrupted reports that playback was cut off.
	AssistantAudioPlaybackInterrupted struct {
		OutputFlowID     string   `json:"outputFlowId" need:"true"`
		ResponseID       string   `json:"responseId"`
		SegmentID        *string  `json:"segmentId,omitzero"`
		SegmentSequence  int64    `json:"segmentSequence"`
		PlayedDuration   Duration `json:"playedDuration"`
		PlayedTextLength int64    `json:"playedTextLength"`
		Precision        string   `json:"precision"`
		Played           bool     `json:"played"`
		HeardByUser      bool     `json:"heardByUser"`
		Extra
	}

	// AssistantAudioPlaybackFailed reports that playback failed.
	AssistantAudioPlaybackFailed struct {
		OutputFlowID    string  `json:"outputFlowId" need:"true"`
		ResponseID      string  `json:"responseId"`
		SegmentID       *string `json:"segmentId,omitzero"`
		SegmentSequence int64   `json:"segmentSequence"`
		Error           Raw     `json:"error,omitzero"`
		Played          bool    `json:"played"`
		HeardByUser     bool    `json:"heardByUser"`
		Extra
	}
)

// EventType returns the name on the wire.
func (AssistantAudioOutputStarted) EventType() string { return branch.AssistantAudioOutputStarted }

// EventType returns the name on the wire.
func (AssistantAudioOutputStreamStarted) EventType() string {
	return branch.AssistantAudioOutputStreamStarted
}

// EventType returns the name on the wire.
func (AssistantAudioOutputChunkReady) EventType() string {
	return branch.AssistantAudioOutputChunkReady
}

// EventType returns the name on the wire.
func (AssistantAudioPushTextStreamOpening) EventType() string {
	return branch.AssistantAudioPushTextStreamOpening
}

// EventType returns the name on the wire.
func (AssistantAudioPushTextStreamOpened) EventType() string {
	return branch.AssistantAudioPushTextStreamOpened
}

// EventType returns the name on the wire.
func (AssistantAudioPushTextInputSent) EventType() string {
	return branch.AssistantAudioPushTextInputSent
}

// EventType returns the name on the wire.
func (AssistantAudioOutputStreamCompleted) EventType() string {
	return branch.AssistantAudioOutputStreamCompleted
}

// EventType returns the name on the wire.
func (AssistantAudioOutputArtifactCaptured) EventType() string {
	return branch.AssistantAudioOutputArtifactCaptured
}

// EventType returns the name on the wire.
func (AssistantAudioOutputSegmentFailed) EventType() string {
	return branch.AssistantAudioOutputSegmentFailed
}

// EventType returns the name on the wire.
func (AssistantAudioOutputCompleted) EventType() string { return branch.AssistantAudioOutputCompleted }

// EventType returns the name on the wire.
func (AssistantAudioOutputFailed) EventType() string { return branch.AssistantAudioOutputFailed }

// EventType returns the name on the wire.
func (AssistantAudioPlaybackQueued) EventType() string { return branch.AssistantAudioPlaybackQueued }

// EventType returns the name on the wire.
func (AssistantAudioPlaybackStarted) EventType() string { return branch.AssistantAudioPlaybackStarted }

// EventType returns the name on the wire.
func (AssistantAudioPlaybackProgress) EventType() string {
	return branch.AssistantAudioPlaybackProgress
}

// EventType returns the name on the wire.
func (AssistantAudioPlaybackCompleted) EventType() string {
	return branch.AssistantAudioPlaybackCompleted
}

// EventType returns the name on the wire.
func (AssistantAudioPlaybackInterrupted) EventType() string {
	return branch.AssistantAudioPlaybackInterrupted
}

// EventType returns the name on the wire.
func (AssistantAudioPlaybackFailed) EventType() string { return branch.AssistantAudioPlaybackFailed }
