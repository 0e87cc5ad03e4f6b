package branch

import (
	"time"

	"github.com/go-json-experiment/json"

	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/view/branch"
)

// Summary is a branch's index entry: what lists show of it without reading its
// log. Tree fields are computed from the fork points of a whole session.
type Summary struct {
	Channel   string           `json:"channel"`
	Session   string           `json:"session"`
	Branch    string           `json:"branch"`
	Fields    branch.Fields    `json:"fields"`
	Fork      branch.ForkPoint `json:"fork,omitzero"`
	FirstText string           `json:"first_text,omitzero"`
	Messages  int64            `json:"messages"`
	Created   time.Time        `json:"created"`
	Active    time.Time        `json:"active"`
	Run       string           `json:"run,omitzero"`
}

// SessionInfo is what a session has besides its branches. The branch main folds
// it from side envelopes.
type SessionInfo struct {
	Metadata branch.Raw `json:"metadata,omitzero"`
	Active   time.Time  `json:"active,omitzero"`
}

// TypeSession is the side envelope that changes a session's metadata or tells
// of activity on another branch. Its data is a SessionInfo; what is absent
// stays as it is.
const TypeSession = "hpd.session"

// Summarize is the index entry of a state.
func Summarize(m *channel.Metadata, s *State) Summary {
	out := Summary{
		Channel: m.ID, Session: s.Session, Branch: s.Branch, Fields: s.Fields, Fork: s.Fork, FirstText: s.FirstText,
		Messages: s.Messages, Created: s.Created, Active: s.Active,
	}
	if s.Run != nil {
		out.Run = s.Run.ID
	}
	return out
}

// ParseSummary reads an index entry.
func ParseSummary(data []byte) (Summary, error) {
	var s Summary
	err := json.Unmarshal(data, &s)
	return s, err
}

// moves are the events with which a branch's entry changes: the beginning and
// the end of runs and messages, and changes of fields. Deltas are not.
var moves = map[string]bool{
	branch.BranchRunStarted: true, branch.BranchRunCompleted: true, branch.MessageStarted: true, branch.MessageCompleted: true,
	branch.TextMessageStart: true, branch.TextMessageEnd: true, branch.ToolCallEnd: true, branch.ToolCallResult: true,
	branch.BranchCreated: true, branch.BranchForked: true, branch.BranchMetadataUpdated: true, branch.BranchHistoryCompacted: true,
}

// OnAccepted moves the branch's index entry.
func (*Adapter) OnAccepted(m *channel.Metadata, s channel.State, e *envelope.Envelope) channel.Effects {
	state, ok := s.(*State)
	name, isEvent := branch.WireType(e.Type)
	if !ok || !isEvent || !moves[name] {
		return channel.Effects{}
	}
	value, err := json.Marshal(Summarize(m, state), json.Deterministic(true))
	if err != nil {
		return channel.Effects{} // what was folded from JSON is writable
	}
	return channel.Effects{Index: []channel.IndexEntry{{Key: m.ID, Value: value}}}
}

// FoldSide takes an envelope of the side log.
func (*Adapter) FoldSide(s channel.State, e *envelope.Envelope) channel.State {
	state, ok := s.(*State)
	if !ok || e.Type != TypeSession {
		return s
	}
	var change SessionInfo
	if json.Unmarshal(e.Data, &change) != nil {
		return s
	}
	info := SessionInfo{}
	if state.SessionInfo != nil {
		info = *state.SessionInfo
	}
	if change.Metadata != nil {
		info.Metadata = change.Metadata
	}
	if change.Active.After(info.Active) {
		info.Active = change.Active
	}
	next := *state
	next.SessionInfo = &info
	return &next
}
