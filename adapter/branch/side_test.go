package branch_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/parley-hub/parley/adapter/adaptertest"
	adapter "github.com/parley-hub/parley/adapter/branch"
	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/conformance/spec"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/view/branch"
)

// note returns an envelope of the side log with the dialect's mark.
func note(eventType, data string, ext branch.Ext) *envelope.Envelope {
	e := adaptertest.Envelope("user", eventType, data)
	ext.Server = true
	e.Ext = ext.Bytes()
	return e
}

// A branch's creation adds its other first events, and main also its session.
func TestCreationBringsItsFirstEvents(t *testing.T) {
	t.Parallel()
	c := &spec.T{T: t}
	p := open(c)
	created := event("user", `BRANCH_CREATED {"name":"main","tags":["x"],"createdAt":"2026-03-09T10:00:00Z"}`, branch.Ext{Server: true, Opens: true, Session: branch.Raw(`{"k":1}`)})
	state := subject.Fold(p.State, created)
	fx := subject.OnAccepted(p.Meta, state, created)
	c.Equal(len(fx.Append), 3)
	for i, want := range []struct {
		eventType, data string
		where           channel.Where
	}{
		{branch.LogType(branch.BranchMetadataUpdated), `{"name":"main","tags":["x"]}`, channel.History},
		{branch.LogType(branch.BranchTreeUpdated), `{"siblingIndex":0,"totalSiblings":1,"isOriginal":true,"childBranches":[]}`, channel.History},
		{adapter.TypeSession, string(fx.Append[2].Envelope.Data), channel.Side},
	} {
		draft := fx.Append[i]
		c.Equal([]any{draft.Envelope.Type, string(draft.Envelope.Data), draft.Where}, []any{want.eventType, want.data, want.where})
		c.True(branch.ParseExt(draft.Envelope.Ext).Server, "the server's mark is on it")
		if draft.Where == channel.Side {
			c.NoError(subject.ValidateSide(p.Meta, state, &draft.Envelope))
			state = subject.FoldSide(state, &draft.Envelope)
		} else {
			c.NoError(subject.ValidateSend(p.Meta, state, &draft.Envelope))
			state = subject.Fold(state, &draft.Envelope)
		}
	}
	listed, err := adapter.ParseSessionSummary(fx.Append[2].Index[0].Value)
	c.NoError(err)
	c.Equal(string(listed.Metadata), `{"k":1}`)
	entry, err := adapter.ParseSummary(fx.Index[0].Value)
	c.NoError(err)
	folded := state.(*adapter.State)
	c.Equal(entry.Told, folded.Told)
	c.True(folded.Told != "", "the branch knows its place")
	c.Equal(string(folded.SessionInfo.Metadata), `{"k":1}`)

	plain := event("user", `BRANCH_CREATED {"name":"main"}`, branch.Ext{Server: true})
	c.Equal(len(subject.OnAccepted(p.Meta, state, plain).Append), 0)
}

// A permanent decision is found again, and their number is bounded.
func TestDecisions(t *testing.T) {
	t.Parallel()
	c := &spec.T{T: t}
	s := open(c).State
	for i := range 1025 {
		s = subject.FoldSide(s, note(adapter.TypePermission, fmt.Sprintf(`{"function":"f%d","allowed":%t}`, i, i%2 == 0), branch.Ext{}))
	}
	s = subject.FoldSide(s, note(adapter.TypePermission, `{"function":"f2","allowed":false}`, branch.Ext{}))
	s = subject.FoldSide(s, note(adapter.TypePermission, `{"function`, branch.Ext{}))
	state := s.(*adapter.State)
	c.Equal(len(state.Permissions), 1024)
	for function, want := range map[string][2]bool{"f0": {false, false}, "f1": {false, true}, "f2": {false, true}, "f4": {true, true}, "none": {false, false}} {
		allowed, decided := state.Permission(function)
		c.Equal([2]bool{allowed, decided}, want)
	}
}

// A run's configuration is kept until its producer speaks or the run ends.
func TestWaiting(t *testing.T) {
	t.Parallel()
	config := branch.Ext{RunConfig: branch.Raw(`{"modelId":"m"}`)}
	for name, speaks := range map[string]func(p play) error{
		"its producer speaks": func(p play) error { return p.producer(delta) },
		"it ends":             func(p play) error { return p.server(ended) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := &spec.T{T: t}
			p := open(c)
			p.State = subject.FoldSide(p.State, note(adapter.TypeWaiting, `{"run":"r1"}`, config))
			c.NoError(p.server(input...))
			c.Equal(p.state().Waiting, &adapter.Waiting{Run: "r1", RunConfig: config.RunConfig})
			c.NoError(speaks(p))
			c.Equal(p.state().Waiting, (*adapter.Waiting)(nil))
		})
	}
	c := &spec.T{T: t}
	p := open(c)
	p.State = subject.FoldSide(p.State, note(adapter.TypeWaiting, `{"run":"another"}`, config))
	c.NoError(p.server(input...))
	c.Equal(p.state().Waiting, (*adapter.Waiting)(nil)) // the run never began
}

func TestValidateSide(t *testing.T) {
	t.Parallel()
	c := &spec.T{T: t}
	p := open(c)
	for _, eventType := range []string{adapter.TypeSession, adapter.TypeSessionState, adapter.TypePermission, adapter.TypeWaiting} {
		c.NoError(subject.ValidateSide(p.Meta, p.State, note(eventType, `{}`, branch.Ext{})))
		c.Equal(fault.CodeOf(subject.ValidateSide(p.Meta, p.State, adaptertest.Envelope("user", eventType, `{}`))), fault.Protocol)
	}
	c.Equal(fault.CodeOf(subject.ValidateSide(p.Meta, p.State, note("hpd.other", `{}`, branch.Ext{}))), fault.Protocol)
	side := *p.state()
	side.Branch = "side"
	c.Equal(fault.CodeOf(subject.ValidateSide(p.Meta, &side, note(adapter.TypePermission, `{}`, branch.Ext{}))), fault.Protocol)
	c.NoError(subject.ValidateSide(p.Meta, &side, note(adapter.TypeWaiting, `{}`, branch.Ext{})))
	large := note(adapter.TypeSessionState, string(make([]byte, adapter.DefaultRecord+1)), branch.Ext{})
	c.Equal(fault.CodeOf(subject.ValidateSide(p.Meta, p.State, large)), fault.TooLarge)
}

// A branch accepts tasks of its own agent and of no others.
func TestWork(t *testing.T) {
	t.Parallel()
	c := &spec.T{T: t}
	p := open(c)
	step := func(id, state, text string) *channel.Item {
		return &channel.Item{Kind: channel.ItemWork, ID: id, Name: "bot", State: state, Text: text, Envelope: &envelope.Envelope{CreatedAt: adaptertest.Epoch}}
	}
	work := func(sender string, s *channel.Item) error {
		drafts, err := subject.Work(p.Meta, p.State, sender, s)
		for _, d := range drafts {
			e := d.Envelope.Clone()
			e.Sender, e.Channel = sender, p.Meta.ID
			c.NoError(p.Post(e))
		}
		return err
	}
	c.Equal(fault.CodeOf(work("bot", step("t1", channel.WorkSubmitted, "dive"))), fault.Conflict)
	c.NoError(p.server(input...))
	c.NoError(work("bot", step("t1", channel.WorkSubmitted, "dive")))
	c.Equal(fault.CodeOf(work("user", step("t1", channel.WorkCompleted, ""))), fault.AccessDenied)
	c.Equal(fault.CodeOf(work("user", step("t2", channel.WorkSubmitted, ""))), fault.Conflict)
	c.NoError(p.producer(finished))
	c.NoError(p.server(ended))
	c.Equal(fault.CodeOf(work("bot", step("t1", channel.WorkWorking, ""))), fault.Conflict)
	c.NoError(work("bot", step("t1", channel.WorkCompleted, "deep")))
	reader := channel.ReaderOf(subject, p.Meta)
	var told []string
	for _, e := range p.Log {
		for _, i := range reader.Read(nil, e) {
			if i.Kind == channel.ItemWork {
				told = append(told, i.ID+" "+i.State+" "+i.Text)
			}
		}
	}
	c.Equal(told, []string{"t1 submitted dive", "t1 completed deep"})
}

// An interruption is folded into its run, and ends with it.
func TestInterruption(t *testing.T) {
	t.Parallel()
	c := &spec.T{T: t}
	p := open(c)
	started := event("user", `BRANCH_RUN_STARTED {"runtimeRunId":"r1","agentId":"a"}`, branch.Ext{Server: true})
	s := subject.Fold(p.State, started)
	of := func(run string) *envelope.Envelope {
		return note(adapter.TypeInterrupted, `{"run":"`+run+`","reason":"enough"}`, branch.Ext{})
	}
	c.NoError(subject.ValidateSide(p.Meta, s, of("r1")))
	c.Equal(subject.FoldSide(s, of("r0")).(*adapter.State).Run.Interrupted, "")
	cut := subject.FoldSide(s, of("r1"))
	c.Equal(cut.(*adapter.State).Run.Interrupted, "enough")
	c.Equal(s.(*adapter.State).Run.Interrupted, "")
	data, err := subject.Codec().Encode(cut)
	c.NoError(err)
	read, err := subject.Codec().Decode(data)
	c.NoError(err)
	c.Equal(read.(*adapter.State).Run.Interrupted, "enough")
	ended := subject.Fold(cut, event("user", `BRANCH_RUN_COMPLETED {"runtimeRunId":"r1","agentId":"a","cancelled":true}`, branch.Ext{Server: true}))
	c.True(ended.(*adapter.State).Run == nil, "the run has ended")
	large := note(adapter.TypeInterrupted, `{"run":"r1","reason":"`+strings.Repeat("x", 17<<10)+`"}`, branch.Ext{})
	c.Equal(fault.CodeOf(adapter.New(adapter.Options{Record: 16 << 10}).ValidateSide(p.Meta, s, large)), fault.TooLarge)
}
