package wire

import (
	"github.com/parley-hub/parley/view/branch"
)

// Events of this file: content and transcripts.
type (
	// ContentUploaded reports an upload.
	ContentUploaded struct {
		ContentID string `json:"contentId" need:"true"`
		MediaType string `json:"mediaType"`
		SizeBytes int64  `json:"sizeBytes"`
		Extra
	}

	// ContentUploadFailed reports an upload that failed.
	ContentUploadFailed struct {
		Error string `json:"error"`
		Extra
	}

	// HostedFileUploaded reports an upload to a provider.
	HostedFileUploaded struct {
		FileID    string `json:"fileId" need:"true"`
		MediaType string `json:"mediaType"`
		SizeBytes *int64 `json:"sizeBytes,omitzero"`
		Extra
	}

	// HostedFileUploadFailed reports a failed upload to a provider.
	HostedFileUploadFailed struct {
		Error string `json:"error"`
		Extra
	}

	// ContentReferenceResolved reports how a reference was resolved.
	ContentReferenceResolved struct {
		ContentURI     string         `json:"contentUri"`
		ResolutionKind ResolutionKind `json:"resolutionKind,omitzero"`
		MediaType      string         `json:"mediaType"`
		SizeBytes      *int64         `json:"sizeBytes,omitzero"`
		Extra
	}

	// ContentReferenceResolutionFailed reports a reference that was not resolved.
	ContentReferenceResolutionFailed struct {
		ContentURI string `json:"contentUri"`
		Error      string `json:"error"`
		Extra
	}

	// UserAudioTranscriptDelta is the next piece of a transcript.
	UserAudioTranscriptDelta struct {
		Text           string  `json:"text" need:"true"`
		MessageID      string  `json:"messageId" need:"true"`
		ProviderItemID *string `json:"providerItemId,omitzero"`
		ContentIndex   *int64  `json:"contentIndex,omitzero"`
		Extra
	}

	// UserAudioTranscriptCompleted is a whole transcript.
	UserAudioTranscriptCompleted struct {
		Text           string  `json:"text" need:"true"`
		MessageID      string  `json:"messageId" need:"true"`
		ProviderItemID *string `json:"providerItemId,omitzero"`
		ContentIndex   *int64  `json:"contentIndex,omitzero"`
		Extra
	}

	// UserAudioTranscriptFailed reports a failed transcript.
	UserAudioTranscriptFailed struct {
		MessageID      string  `json:"messageId" need:"true"`
		Error          string  `json:"error"`
		ProviderItemID *string `json:"providerItemId,omitzero"`
		ContentIndex   *int64  `json:"contentIndex,omitzero"`
		Extra
	}
)

// EventType returns the name on the wire.
func (ContentUploaded) EventType() string { return branch.ContentUploaded }

// EventType returns the name on the wire.
func (ContentUploadFailed) EventType() string { return branch.ContentUploadFailed }

// EventType returns the name on the wire.
func (HostedFileUploaded) EventType() string { return branch.HostedFileUploaded }

// EventType returns the name on the wire.
func (HostedFileUploadFailed) EventType() string { return branch.HostedFileUploadFailed }

// EventType returns the name on the wire.
func (ContentReferenceResolved) EventType() string { return branch.ContentReferenceResolved }

// EventType returns the name on the wire.
func (ContentReferenceResolutionFailed) EventType() string {
	return branch.ContentReferenceResolutionFailed
}

// EventType returns the name on the wire.
func (UserAudioTranscriptDelta) EventType() string { return branch.UserAudioTranscriptDelta }

// EventType returns the name on the wire.
func (UserAudioTranscriptCompleted) EventType() string { return branch.UserAudioTranscriptCompleted }

// EventType returns the name on the wire.
func (UserAudioTranscriptFailed) EventType() string { return branch.UserAudioTranscriptFailed }
