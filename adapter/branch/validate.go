package branch

import (
	"bytes"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/internal/jsonscan"
	"github.com/parley-hub/parley/view/branch"
)

// ValidateSend returns an error for envelopes that must not be in a branch's
// history, including those of other surfaces, which cannot set the dialect's marks.
func (a *Adapter) ValidateSend(_ *channel.Metadata, s channel.State, e *envelope.Envelope) error {
	name, ok := branch.WireType(e.Type)
	if !ok {
		return fault.New(fault.Protocol, "a branch holds HPD events only, and `%s` is not one; post an input by HPD's routes", e.Type)
	}
	row, ok := a.table.Lookup(name)
	if !ok {
		return fault.New(fault.Protocol, "event type %s is not registered; it can be shown live, and not stored", name)
	}
	state, ok := s.(*State)
	if !ok {
		return fault.New(fault.Internal, "the branch has no state")
	}
	ext := branch.ParseExt(e.Ext)
	if !a.table.Durable(name, e.Data, ext.Server) {
		return fault.New(fault.Protocol, "%s is shown live and never stored", name)
	}
	if err := state.scope(name, e.Data); err != nil {
		return err
	}
	if !ext.Server {
		if row.Source != branch.Producer {
			return fault.New(fault.Protocol, "%s is written by the server only", name)
		}
		if err := state.ofRun(name, ext.Flow, e.Sender); err != nil {
			return err
		}
	}
	return a.judge(state, name, e.Data)
}

// scope returns an error if a payload names another session or branch. Stored
// payloads have no base fields, so most are not decoded here.
func (s *State) scope(name string, data []byte) error {
	for _, field := range [...]struct{ name, want string }{{"sessionId", s.Session}, {"branchId", s.Branch}, {"threadId", s.Branch}} {
		if !bytes.Contains(data, []byte(field.name)) {
			continue
		}
		if got, ok := member(data, field.name); ok && got != field.want {
			return fault.New(fault.Protocol, "%s is of another scope: `%s` is %.60q, and this branch is %q of session %q", name, field.name, got, s.Branch, s.Session)
		}
	}
	return nil
}

// ofRun returns an error if a producer's event does not belong to the active run.
func (s *State) ofRun(name, flow, sender string) error {
	switch {
	case s.Run == nil:
		return fault.New(fault.Conflict, "%s belongs to a run, and none is active on branch %q", name, s.Branch).Because(fault.NoRun)
	case flow == "" || flow != s.Run.Turn:
		return fault.New(fault.Conflict, "%s is of another run than the active one, %s", name, s.Run.ID).Because(fault.NoRun)
	case s.Run.Agent != "" && sender != s.Run.Agent:
		return fault.New(fault.AccessDenied, "run %s belongs to another agent; only its own producer publishes for it", s.Run.ID)
	}
	return nil
}

// judge enforces the order of runs and turns: one run at a time, each ended once,
// and one turn in it that ends once.
func (a *Adapter) judge(s *State, name string, data []byte) error {
	switch name {
	case branch.BranchRunStarted:
		if s.Run != nil {
			return fault.New(fault.Conflict, "branch %q has an active run, %s; wait for its end or interrupt it", s.Branch, s.Run.ID).Because(fault.RunActive)
		}
		if id, _ := member(data, "runtimeRunId"); id == "" {
			return fault.New(fault.Invalid, "%s names no run", name)
		}
	case branch.BranchRunCompleted:
		if id, _ := member(data, "runtimeRunId"); s.Run == nil || id != s.Run.ID {
			return fault.New(fault.Conflict, "run %.60q is not active on branch %q", id, s.Branch).Because(fault.NoRun)
		}
	case branch.MessageTurnStarted:
		id, _ := member(data, "messageTurnId")
		switch {
		case s.Run == nil:
			return fault.New(fault.Conflict, "a turn belongs to a run, and none is active on branch %q", s.Branch).Because(fault.NoRun)
		case id == "":
			return fault.New(fault.Invalid, "%s names no turn", name)
		case s.Run.Turn != "":
			return fault.New(fault.Protocol, "run %s has turn %s; a run has one", s.Run.ID, s.Run.Turn)
		}
	case branch.MessageTurnFinished, branch.MessageTurnError:
		id, _ := member(data, "messageTurnId")
		if s.Run == nil || s.Run.Turn == "" || s.Run.TurnEnded || id != s.Run.Turn {
			return fault.New(fault.Protocol, "%s ends turn %.60q, which is not open", name, id)
		}
	case branch.BranchCreated, branch.BranchMetadataUpdated:
		if len(data) > a.record {
			return fault.New(fault.TooLarge, "name, description, tags and metadata have %d bytes together; at most %d are kept", len(data), a.record)
		}
	}
	return nil
}

// member reads a text member of a payload without decoding the rest. It validates
// the payload first, because a log may contain anything.
func member(data []byte, name string) (string, bool) {
	if !jsontext.Value(data).IsValid() {
		return "", false
	}
	value := jsonscan.Member(data, name)
	if value == nil {
		return "", false
	}
	return jsonscan.Text(value)
}
