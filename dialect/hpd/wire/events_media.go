package wire

import (
	"github.com/parley-hub/parley/view/branch"
)

// Events of this file: content and transcripts.
type (
	// ContentUploaded tells of an upload.
	ContentUploaded struct {
		ContentID string `json:"contentId" need:"true"`
		MediaType string `json:"mediaType"`
		SizeBytes int64  `json:"sizeBytes"`
		Extra
	}

	// ContentUploadFailed tells of an upload that failed.
	ContentUploadFailed struct {
		Error string `json:"error"`
		Extra
	}

	// HostedFileUploaded tells of an upload to a provider.
	HostedFileUploaded struct {
		FileID    string `json:"fileId" need:"true"`
		MediaType string `json:"mediaType"`
		SizeBytes *int64 `json:"sizeBytes,omitzero"`
		Extra
	}

	// HostedFileUploadFailed tells of one that failed.
	HostedFileUploadFailed struct {
		Error string `json:"error"`
		Extra
	}

	// ContentReferenceResolved tells how a reference was resolved.
	ContentReferenceResolved struct {
		ContentURI     string         `json:"contentUri"`
		ResolutionKind ResolutionKind `json:"resolutionKind,omitzero"`
		MediaType      string         `json:"mediaType"`
		SizeBytes      *int64         `json:"sizeBytes,omitzero"`
		Extra
	}

	// ContentReferenceResolutionFailed tells of one that was not.
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

	// UserAudioTranscriptFailed tells of one that failed.
	UserAudioTranscriptFailed struct {
		MessageID      string  `json:"messageId" need:"true"`
		Error          string  `json:"error"`
		ProviderItemID *string `json:"providerItemId,omitzero"`
		ContentIndex   *int64  `json:"contentIndex,omitzero"`
		Extra
	}
)

// EventType is the name on the wire.
func (ContentUploaded) EventType() string { return branch.ContentUploaded }

// EventType is the name on the wire.
func (ContentUploadFailed) EventType() string { return branch.ContentUploadFailed }

// EventType is the name on the wire.
func (HostedFileUploaded) EventType() string { return branch.HostedFileUploaded }

// EventType is the name on the wire.
func (HostedFileUploadFailed) EventType() string { return branch.HostedFileUploadFailed }

// EventType is the name on the wire.
func (ContentReferenceResolved) EventType() string { return branch.ContentReferenceResolved }

// EventType is the name on the wire.
func (ContentReferenceResolutionFailed) EventType() string {
	return branch.ContentReferenceResolutionFailed
}

// EventType is the name on the wire.
func (UserAudioTranscriptDelta) EventType() string { return branch.UserAudioTranscriptDelta }

// EventType is the name on the wire.
func (UserAudioTranscriptCompleted) EventType() string { return branch.UserAudioTranscriptCompleted }

// EventType is the name on the wire.
func (UserAudioTranscriptFailed) EventType() string { return branch.UserAudioTranscriptFailed }
