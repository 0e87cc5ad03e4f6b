package hub_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub"
	"github.com/parley-hub/parley/request"
)

var yesOrNo = []request.Choice{{ID: "approve", Label: "Approve", Consequence: "The file is removed."}, {ID: "deny", Label: "Deny"}}

// askingFor returns a request for an approval.
func askingFor(a *agent, channelID string, edit ...func(*hub.Asking)) hub.Asking {
	q := hub.Asking{Request: hub.Request{
		Kind: request.Approval, Channel: channelID, AskedBy: a.id, Title: "Remove the file?", Choices: yesOrNo,
		Action: &request.Action{Name: "remove", Arguments: []byte(`{"path":"/tmp/x", "force":true}`)},
	}}
	for _, finish := range edit {
		finish(&q)
	}
	return q
}

func (r *rig) ask(a *agent, channelID string, edit ...func(*hub.Asking)) hub.Request {
	r.t.Helper()
	asked, err := r.Ask(ctx, askingFor(a, channelID, edit...), nil)
	if err != nil {
		r.t.Fatal(err)
	}
	return asked
}

func due(after time.Duration, otherwise string) func(*hub.Asking) {
	return func(q *hub.Asking) { q.DueAt, q.IfNobodyAnswers = time.Now().Add(after), otherwise }
}

func (r *rig) request(id string) hub.Request {
	r.t.Helper()
	got, err := r.Request(ctx, id)
	if err != nil {
		r.t.Fatal(err)
	}
	return got
}

// requestIDs lists the ids that a query selects, page by page.
func (r *rig) requestIDs(q hub.RequestQuery) (ids []string) {
	r.t.Helper()
	for {
		page, err := r.Requests(ctx, q)
		if err != nil {
			r.t.Fatal(err)
		}
		for _, got := range page.Requests {
			ids = append(ids, got.ID)
		}
		if page.Next == "" {
			return ids
		}
		q.After = page.Next
	}
}

func TestRequests(t *testing.T) {
	t.Parallel()
	runs(t, "one is asked, shown, answered once, and all of it survives a restart", hub.Options{}, func(t *testing.T, r *rig) {
		a, b, p := r.agent("alice"), r.agent("bob"), r.human("pia")
		ch := r.open("discussion", a, b, p)
		f := r.follow(ch, hub.FollowOptions{As: p.id})
		defer f.Close()
		r.shown(f)
		length := len(r.log(ch))
		asked := r.ask(b, ch, func(q *hub.Asking) { q.For = p.id }) // it is alice's turn
		if asked.State != request.Open || asked.ID == "" || asked.Action.Digest == "" || asked.AskedAt.IsZero() {
			t.Errorf("%+v", asked)
		}
		if got := r.shown(f); !slices.Equal(got, []string{fmt.Sprintf("(parley.request@%d)", length)}) {
			t.Errorf("pia is shown %v", got)
		}
		r.crash()
		if diff := cmp.Diff(asked, r.request(asked.ID)); diff != "" {
			t.Errorf("after a restart (-asked +found):\n%s", diff)
		}
		by := &hub.Caller{Agents: []string{p.id}, Key: "key-1", Connection: "c-7"}
		got, err := r.Answer(ctx, asked.ID, hub.Answer{Choice: "approve", As: p.id, Note: "fine", Digest: asked.Action.Digest}, by)
		if err != nil {
			t.Fatal(err)
		}
		want := asked
		want.State, want.EndedAt = request.Answered, got.Answer.At
		want.Answer = &request.Answer{
			Choice: "approve", Note: "fine", By: request.By{Agent: p.id, Key: "key-1", Connection: "c-7"},
			At: got.Answer.At, Envelope: got.Answer.Envelope,
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
		for range 2 {
			if diff := cmp.Diff(got, r.request(asked.ID)); diff != "" {
				t.Error(diff)
			}
			if again, err := r.Answer(ctx, asked.ID, hub.Answer{Choice: "approve", As: p.id}, by); err != nil || again.Answer.Envelope != got.Answer.Envelope {
				t.Errorf("the same again: %+v %v", again.Answer, err)
			}
			_, err := r.Answer(ctx, asked.ID, hub.Answer{Choice: "deny", As: p.id}, by)
			var ended *hub.RequestEnded
			if !errors.As(err, &ended) || fault.CodeOf(err) != fault.Conflict || fault.ReasonOf(err) != fault.RequestAnswered || ended.Request.Answer.Choice != "approve" {
				t.Errorf("another answer: %v", err)
			}
			r.restart()
		}
		if len(r.log(ch)) != length {
			t.Errorf("history %v", r.types(ch))
		}
		side, err := r.Side(ctx, ch)
		if err != nil || !slices.Equal(types(side), []string{request.TypeRequest, request.TypeAnswer}) || side[1].Sender != p.id || side[1].Causation != asked.ID {
			t.Errorf("side %v %v", types(side), err)
		}
		if got := r.audit("request_ended"); len(got) != 1 || got[0]["key"] != "key-1" || got[0]["agent_id"] != p.id || got[0]["state"] != "answered" {
			t.Errorf("audit %v", got)
		}
	})
	runs(t, "one that nobody answers expires, also while no hub runs", hub.Options{}, func(t *testing.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		ch := r.open("conversation", a, b)
		soon, later := r.ask(a, ch, due(time.Minute, "deny")), r.ask(a, ch, due(time.Hour, ""))
		r.pass(50 * time.Second)
		if got := r.request(soon.ID); got.State != request.Open {
			t.Errorf("too early: %s", got.State)
		}
		r.stop()
		<-time.After(time.Minute)
		r.start()
		// The answer comes before the sweep, but after the deadline.
		_, err := r.Answer(ctx, soon.ID, hub.Answer{Choice: "approve"}, nil)
		if fault.ReasonOf(err) != fault.RequestExpired {
			t.Errorf("a late answer: %v", err)
		}
		r.pass(2 * time.Second)
		if got := r.request(soon.ID); got.State != request.Expired || got.Outcome() != "deny" || got.Answer != nil {
			t.Errorf("%+v", got)
		}
		if got := r.request(later.ID); got.State != request.Open {
			t.Errorf("%+v", got)
		}
		r.pass(2 * time.Hour)
		side, err := r.Side(ctx, ch)
		if err != nil || !slices.Equal(types(side)[2:], []string{request.TypeExpired, request.TypeExpired}) {
			t.Errorf("side %v %v", types(side), err)
		}
	})
	runs(t, "it is cancelled by its asker, with its run, and with its channel", hub.Options{}, func(t *testing.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		ch := r.open("conversation", a, b)
		one := r.ask(a, ch)
		ofRun := r.ask(a, ch, func(q *hub.Asking) { q.Run = "run-1" })
		left := r.ask(a, ch)
		if _, err := r.CancelRequest(ctx, one.ID, "changed my mind", &hub.Caller{Agents: []string{b.id}}); fault.CodeOf(err) != fault.AccessDenied {
			t.Errorf("bob cancels: %v", err)
		}
		got, err := r.CancelRequest(ctx, one.ID, "changed my mind", &hub.Caller{Agents: []string{a.id}})
		if err != nil || got.State != request.Cancelled || got.Reason != "changed my mind" {
			t.Errorf("%+v %v", got, err)
		}
		if err := r.CancelRequests(ctx, ch, "run-1", "interrupted"); err != nil {
			t.Fatal(err)
		}
		if r.request(ofRun.ID).State != request.Cancelled || r.request(left.ID).State != request.Open {
			t.Error("the run's end cancelled another request, or not its own")
		}
		r.restart()
		r.say(a, ch, "warm up")
		batches := r.engine.Stats().Batches
		r.end(ch, "done")
		if n := r.engine.Stats().Batches - batches; n != 1 {
			t.Errorf("%d batches", n)
		}
		if got := r.request(left.ID); got.State != request.Cancelled {
			t.Errorf("%+v", got)
		}
		if _, err := r.Answer(ctx, left.ID, hub.Answer{Choice: "approve"}, nil); fault.ReasonOf(err) != fault.RequestCancelled {
			t.Errorf("got %v", err)
		}
		if _, err := r.Ask(ctx, askingFor(a, ch), nil); fault.CodeOf(err) != fault.Protocol {
			t.Errorf("asked in an ended channel: %v", err)
		}
		if err := r.Delete(ctx, ch, theOperator); err != nil {
			t.Fatal(err)
		}
		if _, err := r.Request(ctx, left.ID); fault.CodeOf(err) != fault.NotFound {
			t.Errorf("of a deleted channel: %v", err)
		}
		if got := r.requestIDs(hub.RequestQuery{}); len(got) != 0 {
			t.Errorf("listed %v", got)
		}
	})
	stored(t, "the same key finds the request again", hub.Options{}, func(t *testing.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		ch := r.open("conversation", a, b)
		keyed := func(q *hub.Asking) { q.Key = "call-1" }
		asked := r.ask(a, ch, keyed, due(time.Hour, ""))
		r.restart()
		if again := r.ask(a, ch, keyed, due(2*time.Hour, "")); again.ID != asked.ID || !again.DueAt.Equal(asked.DueAt) {
			t.Errorf("%+v", again)
		}
		if _, err := r.Answer(ctx, asked.ID, hub.Answer{Choice: "deny"}, nil); err != nil {
			t.Fatal(err)
		}
		if again := r.ask(a, ch, keyed); again.ID != asked.ID || again.State != request.Answered {
			t.Errorf("%+v", again)
		}
		if _, err := r.Ask(ctx, askingFor(a, ch, keyed, func(q *hub.Asking) { q.Title = "Another?" }), nil); fault.CodeOf(err) != fault.Conflict {
			t.Errorf("another question: %v", err)
		}
		if other := r.ask(b, ch, keyed); other.ID == asked.ID {
			t.Error("bob found alice's")
		}
	})
	stored(t, "who may ask and answer", hub.Options{}, func(t *testing.T, r *rig) {
		a, b, c, p, q := r.agent("alice"), r.agent("bob"), r.agent("carol"), r.human("pia"), r.human("quinn")
		ch := r.open("discussion", a, b, p)
		as := func(x *agent) *hub.Caller { return &hub.Caller{Agents: []string{x.id}} }
		if _, err := r.Ask(ctx, askingFor(a, ch), as(b)); fault.CodeOf(err) != fault.AccessDenied {
			t.Errorf("bob asks as alice: %v", err)
		}
		if _, err := r.Ask(ctx, askingFor(c, ch), as(c)); fault.CodeOf(err) != fault.AccessDenied {
			t.Errorf("carol asks where she takes no part: %v", err)
		}
		anyone := r.ask(a, ch)
		forPia := r.ask(a, ch, func(q *hub.Asking) { q.For = p.id })
		forBob := r.ask(a, ch, func(q *hub.Asking) { q.For = b.id })
		open := r.ask(a, ch, func(q *hub.Asking) { q.AgentsMayAnswer = true })
		operator := &hub.Caller{Role: hub.RoleOperator}
		for i, c := range []struct {
			to  hub.Request
			by  *hub.Caller
			as  string
			ok  fault.Code
			why string
		}{
			{anyone, as(b), b.id, fault.AccessDenied, "an agent answers for a person"},
			{anyone, as(q), q.id, fault.AccessDenied, "somebody else's channel"},
			{anyone, as(p), q.id, fault.AccessDenied, "for somebody else"},
			{anyone, as(a), a.id, fault.AccessDenied, "its own question"},
			{anyone, as(p), "", fault.Invalid, "for nobody"},
			{anyone, as(p), "nobody", fault.NotFound, "for an unknown"},
			{forPia, as(q), q.id, fault.AccessDenied, "it is for pia"},
			{forPia, &hub.Caller{Role: hub.RoleReader}, "", fault.Invalid, "a reader only reads"},
			{anyone, as(p), p.id, "", "a person of the channel"},
			{forPia, operator, p.id, "", "an operator for pia"},
			{forBob, as(b), b.id, "", "whom it is for"},
			{open, as(b), b.id, "", "the request says so"},
		} {
			_, err := r.Answer(ctx, c.to.ID, hub.Answer{Choice: "approve", As: c.as}, c.by)
			if fault.CodeOf(err) != c.ok {
				t.Errorf("%d, %s: %v", i, c.why, err)
			}
		}
	})
	stored(t, "what is malformed, not offered or not what was shown is refused", hub.Options{Limits: hub.Limits{OpenRequests: 3, AskedRequests: 4}}, func(t *testing.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		ch, other := r.open("conversation", a, b), r.open("conversation", a, b)
		for name, edit := range map[string]func(*hub.Asking){
			"no kind":         func(q *hub.Asking) { q.Kind = "" },
			"no title":        func(q *hub.Asking) { q.Title = "" },
			"past":            func(q *hub.Asking) { q.DueAt = time.Now().Add(-time.Second) },
			"unknown default": due(time.Hour, "perhaps"),
			"default, no due": func(q *hub.Asking) { q.IfNobodyAnswers = "deny" },
			"choice twice":    func(q *hub.Asking) { q.Choices = []request.Choice{{ID: "x"}, {ID: "x"}} },
			"no JSON":         func(q *hub.Asking) { q.Action.Arguments = []byte(`{`) },
		} {
			if _, err := r.Ask(ctx, askingFor(a, ch, edit), nil); fault.CodeOf(err) != fault.Invalid {
				t.Errorf("%s: %v", name, err)
			}
		}
		asked := r.ask(a, ch)
		text := r.ask(a, ch, func(q *hub.Asking) { q.Choices = nil })
		for name, c := range map[string]struct {
			id   string
			a    hub.Answer
			code fault.Code
		}{
			"not offered":    {asked.ID, hub.Answer{Choice: "maybe"}, fault.Invalid},
			"no choice":      {asked.ID, hub.Answer{Text: "yes"}, fault.Invalid},
			"no text":        {text.ID, hub.Answer{}, fault.Invalid},
			"another digest": {asked.ID, hub.Answer{Choice: "approve", Digest: "sha256:00"}, fault.Conflict},
			"unknown":        {ch, hub.Answer{Choice: "approve"}, fault.NotFound},
		} {
			if _, err := r.Answer(ctx, c.id, c.a, nil); fault.CodeOf(err) != c.code {
				t.Errorf("%s: %v", name, err)
			}
		}
		r.ask(a, ch)
		if _, err := r.Ask(ctx, askingFor(b, ch), nil); fault.CodeOf(err) != fault.TooLarge || !strings.Contains(err.Error(), "(limits.open_requests)") {
			t.Errorf("a fourth in the channel: %v", err)
		}
		last := r.ask(a, other)
		if _, err := r.Ask(ctx, askingFor(a, other), nil); fault.CodeOf(err) != fault.TooLarge || !strings.Contains(err.Error(), "(limits.asked_requests)") {
			t.Errorf("a fifth of alice's: %v", err)
		}
		if _, err := r.CancelRequest(ctx, last.ID, "", nil); err != nil {
			t.Fatal(err)
		}
		r.ask(a, other)
	})
	stored(t, "they are listed by state, time and whom they concern", hub.Options{}, func(t *testing.T, r *rig) {
		a, b, p := r.agent("alice"), r.agent("bob"), r.human("pia")
		one, two := r.open("conversation", a, b), r.open("discussion", a, b, p)
		late := r.ask(a, one, due(3*time.Hour, ""))
		soon := r.ask(b, two, due(time.Hour, ""), func(q *hub.Asking) { q.Kind = request.Permission })
		never := r.ask(a, two, func(q *hub.Asking) { q.For = p.id })
		done := r.ask(a, two)
		if _, err := r.Answer(ctx, done.ID, hub.Answer{Choice: "deny"}, nil); err != nil {
			t.Fatal(err)
		}
		r.restart()
		for name, c := range map[string]struct {
			q    hub.RequestQuery
			want []string
		}{
			"all":          {hub.RequestQuery{Limit: 2}, []string{late.ID, soon.ID, never.ID, done.ID}},
			"newest":       {hub.RequestQuery{Newest: true, Limit: 3}, []string{done.ID, never.ID, soon.ID, late.ID}},
			"open, by due": {hub.RequestQuery{State: request.Open, ByDue: true, Limit: 1}, []string{soon.ID, late.ID, never.ID}},
			"answered":     {hub.RequestQuery{State: request.Answered}, []string{done.ID}},
			"kind":         {hub.RequestQuery{Kind: request.Permission}, []string{soon.ID}},
			"channel":      {hub.RequestQuery{Channel: one}, []string{late.ID}},
			"for":          {hub.RequestQuery{For: p.id}, []string{never.ID}},
			"asked by":     {hub.RequestQuery{AskedBy: b.id}, []string{soon.ID}},
			"as pia":       {hub.RequestQuery{As: p.id}, []string{soon.ID, never.ID, done.ID}},
			"as bob":       {hub.RequestQuery{As: b.id}, []string{late.ID, soon.ID, done.ID}},
			"between":      {hub.RequestQuery{After: late.ID, Before: done.ID}, []string{soon.ID, never.ID}},
		} {
			if got := r.requestIDs(c.q); !slices.Equal(got, c.want) {
				t.Errorf("%s: %v, want %v", name, got, c.want)
			}
		}
	})
	runs(t, "it says how the same was decided before", hub.Options{}, func(t *testing.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		ch := r.open("conversation", a, b)
		for _, choice := range []string{"approve", "deny", "approve"} {
			if _, err := r.Answer(ctx, r.ask(a, ch).ID, hub.Answer{Choice: choice}, nil); err != nil {
				t.Fatal(err)
			}
			r.pass(time.Minute)
		}
		r.restart()
		last := time.Now().Add(-time.Minute).UTC()
		if got := r.ask(a, ch).Similar; got == nil || got.Approved != 2 || got.Denied != 1 || !got.Last.Equal(last) {
			t.Errorf("%+v, last at %s", got, last)
		}
		if got := r.ask(b, ch).Similar; got != nil {
			t.Errorf("bob has never asked: %+v", got)
		}
	})
	runs(t, "a follower resumes where a list or an event left it, and an asker is woken", hub.Options{}, func(t *testing.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		ch := r.open("conversation", a, b)
		r.ask(a, ch)
		page, err := r.Requests(ctx, hub.RequestQuery{})
		if err != nil {
			t.Fatal(err)
		}
		asked := r.ask(a, ch)
		r.say(a, ch, "meanwhile")
		woken := make(chan hub.Request)
		go func() {
			got, _ := r.AwaitRequest(ctx, asked.ID)
			woken <- got
		}()
		r.settle()
		f, err := r.FollowRequests(ctx, hub.RequestQuery{AskedBy: a.id}, page.Position)
		if err != nil {
			t.Fatal(err)
		}
		ev, err := f.Next(ctx)
		if err != nil || ev.Request.ID != asked.ID || ev.Request.State != request.Open {
			t.Fatalf("%+v %v", ev, err)
		}
		f.Close()
		if _, err := r.Answer(ctx, asked.ID, hub.Answer{Choice: "deny"}, nil); err != nil {
			t.Fatal(err)
		}
		if got := <-woken; got.State != request.Answered || got.Outcome() != "deny" {
			t.Errorf("%+v", got)
		}
		r.restart()
		if f, err = r.FollowRequests(ctx, hub.RequestQuery{}, ev.Position); err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if ev, err = f.Next(ctx); err != nil || ev.Request.ID != asked.ID || ev.Request.State != request.Answered {
			t.Errorf("%+v %v", ev, err)
		}
	})
}
