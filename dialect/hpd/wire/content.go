package wire

import "time"

// ContentInfo is the JSON body of an upload.
type ContentInfo struct {
	ContentID   string    `json:"contentId"`
	Version     string    `json:"version"`
	ContentType string    `json:"contentType"`
	SizeBytes   int64     `json:"sizeBytes"`
	CreatedAt   time.Time `json:"createdAt"`
	Name        *string   `json:"name,omitzero"`
}

// DefaultContentType is the type of an upload that names none.
const DefaultContentType = "application/octet-stream"

// ContentScheme begins the URI by which messages refer to an upload.
const ContentScheme = "hpd-content://"

// AgentSummary is an agent definition without its configuration.
type AgentSummary struct {
	ID        string         `json:"id"`
	Name      string         `json:"name"`
	CreatedAt time.Time      `json:"createdAt"`
	UpdatedAt time.Time      `json:"updatedAt"`
	Metadata  map[string]Raw `json:"metadata,omitempty"`
}

// StoredAgent is an agent definition; its configuration is stored as it was sent.
type StoredAgent struct {
	AgentSummary
	Config Raw `json:"config"`
}

// CreateAgent is the body of POST /agents.
type CreateAgent struct {
	Name     string         `json:"name"`
	Config   Raw            `json:"config"`
	Metadata map[string]Raw `json:"metadata"`
}

// UpdateAgent is the body of PUT /agents/{id}.
type UpdateAgent struct {
	Config Raw `json:"config"`
}

// ThreadGraph is the body of GET …/thread-graph.
type ThreadGraph struct {
	Threads         []Branch       `json:"threads"`
	ForkGroups      []ForkGroup    `json:"forkGroups"`
	RuntimeChildren []RuntimeChild `json:"runtimeChildren"`
}

// ForkGroup is a source with the forks that were made at one of its messages.
type ForkGroup struct {
	SourceThreadID string   `json:"sourceThreadId"`
	FromMessageID  string   `json:"fromMessageId"`
	ThreadIDs      []string `json:"threadIds"`
}

// RuntimeChild is a branch on which a sub-agent of another branch runs.
type RuntimeChild struct {
	ThreadID       string `json:"threadId"`
	ParentThreadID string `json:"parentThreadId"`
}
