package branch

import (
	"time"

	"github.com/go-json-experiment/json"

	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
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
	branch.BranchMiddlewareStateCommitted: true, // the last event of a fork
}

// Prefixes of index entries; the channel's id follows. Each branch has one, in
// its history, and a second while a run is active. Each session has one in the
// side log of its main branch. Sessions and runs are listed for all homes.
const (
	BranchEntry  = "branch/"
	RunEntry     = "run/"
	SessionEntry = "session/"
)

// SessionSummary is a session's index entry.
type SessionSummary struct {
	Channel string    `json:"channel"` // of its main branch
	Session string    `json:"session"`
	Created time.Time `json:"created"`
	SessionInfo
}

// ParseSessionSummary reads a session's index entry.
func ParseSessionSummary(data []byte) (SessionSummary, error) {
	var s SessionSummary
	err := json.Unmarshal(data, &s)
	return s, err
}

// SummarizeSession is the entry of a session, as its main branch has it.
func SummarizeSession(m *channel.Metadata, s *State) SessionSummary {
	out := SessionSummary{Channel: m.ID, Session: s.Session, Created: m.CreatedAt}
	if s.SessionInfo != nil {
		out.SessionInfo = *s.SessionInfo
	}
	if s.Active.After(out.Active) {
		out.Active = s.Active
	}
	return out
}

// OnAccepted moves the branch's index entry, or the session's.
func (*Adapter) OnAccepted(m *channel.Metadata, s channel.State, e *envelope.Envelope) channel.Effects {
	state, ok := s.(*State)
	if !ok {
		return channel.Effects{}
	}
	if e.Type == TypeSession {
		return channel.Effects{Index: entry(SessionEntry+m.ID, SummarizeSession(m, state), true)}
	}
	name, isEvent := branch.WireType(e.Type)
	if !isEvent || !moves[name] {
		return channel.Effects{}
	}
	summary := Summarize(m, state)
	fx := channel.Effects{Index: entry(BranchEntry+m.ID, summary, false)}
	switch name {
	case branch.BranchRunStarted:
		fx.Index = append(fx.Index, entry(RunEntry+m.ID, summary, true)...)
	case branch.BranchRunCompleted:
		fx.Unindex = []string{RunEntry + m.ID}
	}
	return fx
}

func entry(key string, value any, all bool) []channel.IndexEntry {
	data, err := json.Marshal(value, json.Deterministic(true))
	if err != nil {
		return nil // what was folded from JSON is writable
	}
	return []channel.IndexEntry{{Key: key, Value: data, All: all}}
}

// ValidateSide takes what the dialect says about a session, on its main branch.
func (a *Adapter) ValidateSide(_ *channel.Metadata, s channel.State, e *envelope.Envelope) error {
	state, ok := s.(*State)
	switch {
	case !ok:
		return fault.New(fault.Internal, "the branch has no state")
	case e.Type != TypeSession || !branch.ParseExt(e.Ext).Server:
		return fault.New(fault.Protocol, "the server alone writes beside a branch's history, and `%s` is not of it", e.Type)
	case state.Branch != MainBranch:
		return fault.New(fault.Protocol, "what concerns session %q is kept with its branch %s", state.Session, MainBranch)
	case len(e.Data) > a.record:
		return fault.New(fault.TooLarge, "the session's metadata has %d bytes; at most %d are kept (limits.record)", len(e.Data), a.record)
	}
	return nil
}

// MainBranch is the branch that every session has.
const MainBranch = "main"

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
