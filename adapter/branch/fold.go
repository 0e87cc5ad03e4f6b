package branch

import (
	"slices"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/view/branch"
)

// maxMembers is how many members of a branch are kept.
const maxMembers = 4096

// Fold folds the next event in constant time. It reads a payload only if the
// payload can matter, which is almost never the case for deltas.
func (*Adapter) Fold(s channel.State, e *envelope.Envelope) channel.State {
	state, ok := s.(*State)
	if !ok {
		return s
	}
	name, ok := branch.WireType(e.Type)
	if !ok {
		return s
	}
	if state.Waiting != nil && !branch.ParseExt(e.Ext).Server {
		next := *state // the producer has the input, because it speaks
		next.Waiting, state = nil, &next
	}
	switch name {
	case branch.TextDelta, branch.ReasoningDelta, branch.TextMessageStart, branch.ReasoningMessageStart, branch.MessageStarted,
		branch.ContentAdded, branch.ToolCallStart, branch.ToolCallEnd, branch.ToolCallResult:
		return state.messages(name, e)
	case branch.MessageCompleted, branch.TextMessageEnd, branch.BranchRunStarted, branch.BranchRunCompleted, branch.MessageTurnStarted,
		branch.MessageTurnFinished, branch.MessageTurnError, branch.BranchCreated, branch.BranchForked, branch.BranchMetadataUpdated,
		branch.BranchTreeUpdated, branch.BranchMiddlewareStateCommitted, branch.BranchHistoryCompacted:
		next := *state
		next.lifecycle(name, e)
		return &next
	case branch.ToolCallBackgroundTaskStarted:
		next := *state
		next.taskStarted(e)
		return &next
	}
	return state
}

// lifecycle applies an event that is not part of a message's body to a copy.
func (s *State) lifecycle(name string, e *envelope.Envelope) {
	switch name {
	case branch.MessageCompleted, branch.TextMessageEnd:
		s.Active = e.CreatedAt
	case branch.BranchRunStarted:
		s.runStarted(e)
	case branch.BranchRunCompleted:
		s.Run, s.Waiting, s.Active = nil, nil, e.CreatedAt
	case branch.MessageTurnStarted, branch.MessageTurnFinished, branch.MessageTurnError:
		if s.Run == nil {
			return
		}
		run := *s.Run
		if name == branch.MessageTurnStarted {
			run.Turn, _ = member(e.Data, "messageTurnId")
		} else {
			run.TurnEnded = true
		}
		s.Run = &run
	case branch.BranchCreated, branch.BranchMetadataUpdated:
		var fields branch.Fields
		if json.Unmarshal(e.Data, &fields) == nil {
			s.Fields, s.Active = fields, e.CreatedAt
		}
		if name == branch.BranchCreated {
			s.Created = e.CreatedAt
		}
	case branch.BranchForked:
		var fork branch.ForkPoint
		if json.Unmarshal(e.Data, &fork) == nil {
			s.Fork, s.Created = fork, e.CreatedAt
		}
	case branch.BranchTreeUpdated:
		var tree branch.Tree
		if json.Unmarshal(e.Data, &tree) == nil {
			s.Told = tree.Sum()
		}
	case branch.BranchMiddlewareStateCommitted:
		s.StateSeq = e.Seq
	case branch.BranchHistoryCompacted:
		s.compacted(e)
	}
}

func (s *State) runStarted(e *envelope.Envelope) {
	var p struct {
		ID      string    `json:"runtimeRunId"`
		Agent   string    `json:"agentId"`
		Started time.Time `json:"startedAt"`
	}
	if json.Unmarshal(e.Data, &p) != nil || p.ID == "" {
		return
	}
	if p.Started.IsZero() {
		p.Started = e.CreatedAt
	}
	ext := branch.ParseExt(e.Ext)
	s.Run = &Run{ID: p.ID, AgentID: p.Agent, Agent: ext.Agent, Remote: ext.Remote, Started: p.Started, Seq: e.Seq, By: e.Sender}
	if s.Waiting != nil && s.Waiting.Run != p.ID {
		s.Waiting = nil
	}
	s.Active = e.CreatedAt
	s.join(e.Sender)
	s.join(ext.Agent)
}

// join adds a member to a copy of the list.
func (s *State) join(agent string) {
	if agent == "" || slices.Contains(s.Members, agent) || len(s.Members) >= maxMembers {
		return
	}
	s.Members = append(slices.Clip(s.Members), agent)
}

// compacted sets the count that the dialect has computed; without it, the named
// messages count as removed.
func (s *State) compacted(e *envelope.Envelope) {
	s.Active = e.CreatedAt
	if ext := branch.ParseExt(e.Ext); ext.Messages != nil {
		s.Messages = *ext.Messages
		return
	}
	var p struct {
		Removed      []string     `json:"durableCompactedMessageIds"`
		Replacements []branch.Raw `json:"replacementMessages"`
	}
	if json.Unmarshal(e.Data, &p) == nil && len(p.Removed) > 0 {
		s.Messages = max(0, s.Messages-int64(len(p.Removed))) + int64(len(p.Replacements))
	}
}
