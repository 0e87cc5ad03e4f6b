// Package wire has the JSON objects of /v1 that the hub's HTTP interface writes
// and its Go client reads.
package wire

import "time"

// Person is somebody who takes part.
type Person struct {
	ID     string `json:"agent_id"`
	Name   string `json:"name"`
	Kind   string `json:"kind"` // agent, human or remote_agent
	Online bool   `json:"online"`
}

// ExpectedTurn is whose turn it is in a channel.
type ExpectedTurn struct {
	Person
	Since    time.Time  `json:"since"`
	HandedAt *time.Time `json:"handed_at"`
	DueAt    *time.Time `json:"due_at"`
	Overdue  bool       `json:"overdue"`
}

// Last is the last event of a channel that the caller may see.
type Last struct {
	Sequence  uint64    `json:"sequence"`
	At        time.Time `json:"at"`
	SenderID  string    `json:"sender_id"`
	EventType string    `json:"event_type"`
	Text      string    `json:"text"`
}

// Row is a channel as lists show it.
type Row struct {
	ID           string            `json:"channel_id"`
	Title        string            `json:"title"`
	Type         string            `json:"type"`
	State        string            `json:"state"`
	CloseReason  string            `json:"close_reason"`
	Labels       map[string]string `json:"labels"`
	Participants []Person          `json:"participants"`
	CreatedAt    time.Time         `json:"created_at"`
	ClosedAt     *time.Time        `json:"closed_at"`
	ExpiresAt    *time.Time        `json:"expires_at"`
	Length       uint64            `json:"length"`
	Position     string            `json:"position"`
	Last         *Last             `json:"last"`
	Turn         *ExpectedTurn     `json:"turn"`
	Turns        *TurnCount        `json:"turns"`
	RequestsOpen int               `json:"requests_open"`
	Quarantined  bool              `json:"quarantined"`
}

// TurnCount is how many turns were taken, and how many there may be; a nil Most
// is no limit.
type TurnCount struct {
	Taken int  `json:"taken"`
	Most  *int `json:"most"`
}

// Summary counts what there is; for an agent's key, what concerns the agent.
type Summary struct {
	At       time.Time `json:"at"`
	Position string    `json:"position"`
	Channels struct {
		Pending          int            `json:"pending"`
		Active           int            `json:"active"`
		Overdue          int            `json:"overdue"`
		WaitingForPeople int            `json:"waiting_for_people"`
		Quarantined      int            `json:"quarantined"`
		ByType           map[string]int `json:"by_type"`
	} `json:"channels"`
	Agents struct {
		Registered int `json:"registered"`
		Online     int `json:"online"`
		People     int `json:"people"`
	} `json:"agents"`
	Tasks struct {
		Created int `json:"created"`
		Running int `json:"running"`
	} `json:"tasks"`
	Requests struct {
		Open        int `json:"open"`
		DueWithin5m int `json:"due_within_5m"`
		Overdue     int `json:"overdue"`
	} `json:"requests"`
	Admitted int64 `json:"admitted_1m"`
	Refused  int64 `json:"refused_1m"`
	SlowCut  int64 `json:"slow_cut_10m"`
	// TurnsFailed is how many turns agents reported as failed since the hub was started.
	TurnsFailed int64 `json:"turns_failed"`
}
