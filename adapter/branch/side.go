package branch

import (
	"slices"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/view/branch"
)

// MainBranch is the branch that every session has.
const MainBranch = "main"

// Types of side envelopes. Those that begin with hpd.session are in the side log of
// the branch main.
const (
	// TypeSession changes a session's metadata or reports activity on another
	// branch. Its data is a SessionInfo; absent members do not change.
	TypeSession = "hpd.session"
	// TypeSessionState replaces the state of middleware that all branches of a
	// session share. Its data is an object of texts.
	TypeSessionState = "hpd.session.state"
	// TypePermission stores a decision for a function, which applies from now on in
	// the whole session. Its data is a Permission.
	TypePermission = "hpd.session.permission"
	// TypeWaiting holds the part of an input that is not a message while the
	// input waits for a producer of another process. Its data names the run;
	// the rest is in its branch.Ext, which no surface shows.
	TypeWaiting = "hpd.waiting"
	// TypeInterrupted reports that the active run was interrupted, for the process
	// that takes the run over. Its data is an Interrupted.
	TypeInterrupted = "hpd.interrupted"
	// TypeCondensed is a short form of a part of the history, for readers of its
	// messages. Its data is a branch.Condensed.
	TypeCondensed = "hpd.condensed"
)

// SessionInfo is what a session has besides its branches.
type SessionInfo struct {
	Metadata branch.Raw `json:"metadata,omitzero"`
	Active   time.Time  `json:"active,omitzero"`
}

// Permission is a permanent decision for a function.
type Permission struct {
	Function string `json:"function"`
	Allowed  bool   `json:"allowed"`
}

// maxPermissions is how many permanent decisions a session holds. Above it, the
// oldest is dropped and its function is asked for again.
const maxPermissions = 1024

// Waiting is the configuration of a run that no producer has taken yet,
// without its secrets.
type Waiting struct {
	Run       string     `json:"run"`
	RunConfig branch.Raw `json:"runConfig,omitzero"`
}

// Interrupted is a run that was interrupted and has not ended.
type Interrupted struct {
	Run    string `json:"run"`
	Reason string `json:"reason"`
}

// Permission returns the permanent decision for a function of the session, from the
// state of its main branch.
func (s *State) Permission(function string) (allowed, decided bool) {
	for _, p := range s.Permissions {
		if p.Function == function {
			return p.Allowed, true
		}
	}
	return false, false
}

// ValidateSide accepts the side envelopes of the dialect.
func (a *Adapter) ValidateSide(_ *channel.Metadata, s channel.State, e *envelope.Envelope) error {
	state, ok := s.(*State)
	switch {
	case !ok:
		return fault.New(fault.Internal, "the branch has no state")
	case !branch.ParseExt(e.Ext).Server:
		return fault.New(fault.Protocol, "only the server writes beside a branch's history, and `%s` does not have its mark", e.Type)
	}
	switch e.Type {
	case TypeWaiting: // bounded like an input
		return nil
	case TypeInterrupted:
		if len(e.Data) > a.record {
			return fault.New(fault.TooLarge, "what is said about an interruption has %d bytes; at most %d are kept (limits.record)", len(e.Data), a.record)
		}
		return nil
	case TypeCondensed:
		if len(e.Data) > MaxCondensed {
			return fault.New(fault.TooLarge, "a condensed part of the history has %d bytes; at most %d are kept", len(e.Data), MaxCondensed)
		}
		return nil
	case TypeSession, TypeSessionState, TypePermission:
	default:
		return fault.New(fault.Protocol, "a branch keeps nothing of the type `%s` beside its history", e.Type)
	}
	switch {
	case state.Branch != MainBranch:
		return fault.New(fault.Protocol, "what concerns session %q is kept with its branch %s", state.Session, MainBranch)
	case len(e.Data) > a.record:
		return fault.New(fault.TooLarge, "what is said about the session has %d bytes; at most %d are kept (limits.record)", len(e.Data), a.record)
	}
	return nil
}

// FoldSide folds an envelope of the side log.
func (*Adapter) FoldSide(s channel.State, e *envelope.Envelope) channel.State {
	state, ok := s.(*State)
	if !ok {
		return s
	}
	next := *state
	switch e.Type {
	case TypeSession:
		var change SessionInfo
		if json.Unmarshal(e.Data, &change) != nil {
			return s
		}
		next.SessionInfo = state.SessionInfo.changed(&change)
	case TypeSessionState:
		next.SessionState = nil
		if json.Unmarshal(e.Data, &next.SessionState) != nil {
			return s
		}
	case TypePermission:
		var p Permission
		if json.Unmarshal(e.Data, &p) != nil {
			return s
		}
		next.decide(p)
	case TypeWaiting:
		next.Waiting = &Waiting{RunConfig: branch.ParseExt(e.Ext).RunConfig}
		if json.Unmarshal(e.Data, next.Waiting) != nil {
			return s
		}
	case TypeInterrupted:
		var in Interrupted
		if json.Unmarshal(e.Data, &in) != nil || state.Run == nil || state.Run.ID != in.Run {
			return s
		}
		run := *state.Run
		run.Interrupted = in.Reason
		next.Run = &run
	default:
		return s
	}
	return &next
}

func (info *SessionInfo) changed(change *SessionInfo) *SessionInfo {
	next := SessionInfo{}
	if info != nil {
		next = *info
	}
	if change.Metadata != nil {
		next.Metadata = change.Metadata
	}
	if change.Active.After(next.Active) {
		next.Active = change.Active
	}
	return &next
}

// decide adds a decision to a copy of the list, at its end.
func (s *State) decide(p Permission) {
	s.Permissions = slices.DeleteFunc(slices.Clone(s.Permissions), func(o Permission) bool { return o.Function == p.Function })
	s.Permissions = append(s.Permissions, p)
	if extra := len(s.Permissions) - maxPermissions; extra > 0 {
		s.Permissions = slices.Delete(s.Permissions, 0, extra)
	}
}
