package hub_test

import (
	"fmt"
	"testing"

	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub"
)

// theOperator has a key, and may act for everyone.
var theOperator = &hub.Caller{Key: "k1", Anyone: true, Role: hub.RoleOperator}

// bys returns the audit records as text: kind, the identity concerned, and who
// acted.
func (r *rig) bys(kinds ...string) (list []string) {
	for _, record := range r.audit(kinds...) {
		whom := record["agent_id"]
		if whom == nil {
			whom = "-"
		}
		list = append(list, fmt.Sprintf("%s %v %v", record["kind"], whom, record["by"]))
	}
	return list
}

func TestTheAuditSaysWho(t *testing.T) {
	t.Parallel()
	const operator = "map[key:k1 role:operator]"
	stored(t, "opened, closed, deleted and removed by an operator", withBoard, func(t *testing.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		as := r.As(theOperator)
		ch := r.openWith("board", func(o *hub.Opening) { o.By = theOperator }, a, b)
		if _, err := as.CloseChannel(ctx, ch, "enough"); err != nil {
			t.Fatal(err)
		}
		if err := r.Delete(ctx, ch, theOperator); err != nil {
			t.Fatal(err)
		}
		if err := as.Unregister(ctx, b.id); err != nil {
			t.Fatal(err)
		}
		r.restart()
		want := []string{
			"channel_created - " + operator, "channel_closed - " + operator, "channel_deleted - " + operator,
			"agent_unregistered " + b.id + " " + operator,
		}
		if got := r.bys("channel_created", "channel_closed", "channel_deleted", "agent_unregistered"); !equalIDs(got, want) {
			t.Errorf("audit: %v\nwant: %v", got, want)
		}
		if err := r.As(&hub.Caller{Agents: []string{b.id}}).Unregister(ctx, a.id); fault.CodeOf(err) != fault.AccessDenied {
			t.Errorf("another agent removes alice: %v", err)
		}
	})
	stored(t, "one who has no say so is named as what it is", withBoard, func(t *testing.T, r *rig) {
		a := r.agent("alice")
		self := &hub.Caller{Agents: []string{a.id}, Connection: "c7"}
		ch := r.open("board", a)
		if _, err := r.As(self).CloseChannel(ctx, ch, "done"); err != nil {
			t.Fatal(err)
		}
		want := []string{"channel_created - <nil>", "channel_closed - map[agents:[" + a.id + "] connection:c7]"}
		if got := r.bys("channel_created", "channel_closed"); !equalIDs(got, want) {
			t.Errorf("audit: %v\nwant: %v", got, want)
		}
	})
	stored(t, "an operator who speaks for somebody is in the batch of what it says", withBoard, func(t *testing.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		home := r.home("hpd", "s")
		ch := r.openWith("board", in(home), a, b)
		note := func() *envelope.Envelope {
			return &envelope.Envelope{Channel: ch, Sender: a.id, Type: "board.note", Data: []byte(`{}`)}
		}
		wait := func(p *hub.Pending) {
			t.Helper()
			if _, err := p.Wait(ctx); err != nil {
				t.Fatal(err)
			}
		}
		wait(r.Admit(ctx, note(), nil))                                     // the program that embeds the hub
		wait(r.Admit(ctx, note(), &hub.Caller{Agents: []string{a.id}}))     // alice herself
		wait(r.Admit(ctx, note(), &hub.Caller{Anyone: true}))               // a trusted dialect
		mine := &hub.Caller{Agents: []string{a.id}, Role: hub.RoleOperator} // an operator who is alice
		wait(r.Admit(ctx, note(), mine))
		if got := r.bys("acted_for"); len(got) != 0 {
			t.Errorf("audit: %v", got)
		}
		wait(r.Admit(ctx, note(), theOperator))
		wait(r.AdmitAll(ctx, []*envelope.Envelope{note(), note()}, theOperator))
		wait(r.AdmitNamed(ctx, hub.Opening{Type: "board", Home: home.ID, Name: "n"}, note(), theOperator))
		refused := note()
		refused.Type = "board.bad"
		if _, err := r.Post(ctx, refused, theOperator); err == nil {
			t.Fatal("accepted")
		}
		r.restart()
		acted := "acted_for " + a.id + " " + operator
		if got := r.bys("acted_for"); !equalIDs(got, []string{acted, acted, acted, acted}) {
			t.Errorf("audit: %v", got)
		}
		log := r.log(ch)
		if record := r.audit("acted_for")[0]; record["envelope_id"] != log[4].ID || record["channel_id"] != ch || record["event_type"] != "board.note" {
			t.Errorf("audit: %v", record)
		}
	})
}
