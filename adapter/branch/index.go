package branch

import (
	"time"

	"github.com/go-json-experiment/json"

	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/view/branch"
)

// Summary is a branch's index entry, which lists show without reading its log. Tree
// fields are computed from the fork points of a whole session.
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
	Told      string           `json:"told,omitzero"` // as State has it
}

// Summarize returns the index entry of a state.
func Summarize(m *channel.Metadata, s *State) Summary {
	out := Summary{
		Channel: m.ID, Session: s.Session, Branch: s.Branch, Fields: s.Fields, Fork: s.Fork, FirstText: s.FirstText,
		Messages: s.Messages, Created: s.Created, Active: s.Active, Told: s.Told,
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

// moves are the events that change a branch's entry: the beginning and the end of
// runs and messages, and changes of fields. Deltas do not change it.
var moves = map[string]bool{
	branch.BranchRunStarted: true, branch.BranchRunCompleted: true, branch.MessageStarted: true, branch.MessageCompleted: true,
	branch.TextMessageStart: true, branch.TextMessageEnd: true, branch.ToolCallEnd: true, branch.ToolCallResult: true,
	branch.BranchCreated: true, branch.BranchForked: true, branch.BranchMetadataUpdated: true, branch.BranchHistoryCompacted: true,
	branch.BranchTreeUpdated: true, branch.BranchMiddlewareStateCommitted: true, // the last events of a fork
}

// Prefixes of index entries; the channel's id follows. Each branch has one, in
// its history, and a second while a run is active. Each session has one in the
// side log of its main branch. Sessions and active runs are listed for all homes.
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

// SummarizeSession returns the entry of a session, from the state of its main
// branch.
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

// OnAccepted updates the index entry of the branch or the session, and adds entries
// for runs.
func (*Adapter) OnAccepted(m *channel.Metadata, s channel.State, e *envelope.Envelope) channel.Effects {
	state, ok := s.(*State)
	if !ok {
		return channel.Effects{}
	}
	if e.Type == TypeSession {
		return channel.Effects{Index: entry(SessionEntry+m.ID, SummarizeSession(m, state), true)}
	}
	if e.Type == TypeCondensed {
		return channel.Effects{Index: condensedEntry(m, e)}
	}
	name, isEvent := branch.WireType(e.Type)
	var fx channel.Effects
	if isEvent && ofRuns[name] {
		fx.Index = runEvent(m, state, name, e)
	}
	if !isEvent || !moves[name] {
		return fx
	}
	if name == branch.BranchCreated {
		fx.Append, state = first(m, state, e)
	}
	summary := Summarize(m, state)
	fx.Index = append(fx.Index, entry(BranchEntry+m.ID, summary, false)...)
	switch name {
	case branch.BranchRunStarted:
		fx.Index = append(fx.Index, entry(RunEntry+m.ID, summary, true)...)
	case branch.BranchRunCompleted:
		fx.Unindex = []string{RunEntry + m.ID}
	}
	return fx
}

// first returns the events that follow a branch's creation in its batch, and the
// state after them. The branch main also creates its session.
func first(m *channel.Metadata, s *State, e *envelope.Envelope) ([]channel.Draft, *State) {
	ext := branch.ParseExt(e.Ext)
	if !ext.Opens {
		return nil, s
	}
	place := branch.Places([]branch.Node{{ID: s.Branch}})[s.Branch]
	fields, err := json.Marshal(s.Fields, json.Deterministic(true))
	if err != nil {
		return nil, s // values that were folded from JSON can be encoded
	}
	tree, err := json.Marshal(place.Tree, json.Deterministic(true))
	if err != nil {
		return nil, s
	}
	mark := branch.Ext{Server: true}.Bytes()
	draft := func(eventType string, data []byte) channel.Draft {
		return channel.Draft{Envelope: envelope.Envelope{Sender: e.Sender, Type: eventType, Data: data, Ext: mark, Priority: envelope.Normal}}
	}
	list := []channel.Draft{
		draft(branch.LogType(branch.BranchMetadataUpdated), fields), draft(branch.LogType(branch.BranchTreeUpdated), tree),
	}
	next := *s
	next.Told = place.Sum()
	if s.Branch != MainBranch {
		return list, &next
	}
	next.SessionInfo = &SessionInfo{Metadata: ext.Session, Active: e.CreatedAt}
	info, err := json.Marshal(next.SessionInfo, json.Deterministic(true))
	if err != nil {
		return nil, s
	}
	session := draft(TypeSession, info)
	session.Where, session.Index = channel.Side, entry(SessionEntry+m.ID, SummarizeSession(m, &next), true)
	return append(list, session), &next
}

func entry(key string, value any, all bool) []channel.IndexEntry {
	data, err := json.Marshal(value, json.Deterministic(true))
	if err != nil {
		return nil // values that were folded from JSON can be encoded
	}
	return []channel.IndexEntry{{Key: key, Value: data, All: all}}
}
