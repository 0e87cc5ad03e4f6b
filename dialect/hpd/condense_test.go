package hpd_test

import (
	"fmt"
	"strings"
	"testing"

	adapter "github.com/parley-hub/parley/adapter/branch"
	"github.com/parley-hub/parley/conformance/spec"
	"github.com/parley-hub/parley/dialect/hpd"
	"github.com/parley-hub/parley/hub"
	"github.com/parley-hub/parley/internal/scale"
)

// streamed creates a session whose agent said one message in a number of deltas,
// and ends its run if end is set. It returns the text.
func (p *remote) streamed(session string, deltas int, end bool) (run object, text string) {
	p.t.Helper()
	p.input(p.agent, session, "main", "hi")
	w := p.work.named("input")
	var said strings.Builder
	batch := []object{{"type": "TEXT_MESSAGE_START", "messageId": "m", "role": "assistant"}}
	for i := range deltas {
		word := fmt.Sprint(i, " ")
		said.WriteString(word)
		if batch = append(batch, delta(word)); len(batch) == 512 || i == deltas-1 {
			if a := p.publish(w, "", batch...); a.status != 202 {
				p.t.Fatalf("published: %d %s", a.status, a.raw)
			}
			batch = nil
		}
	}
	if end {
		p.complete(w, object{"status": "completed"})
	}
	return w, said.String()
}

// parts returns the condensed parts of a session's main branch.
func (r *rig) parts(session string) (n int) {
	r.t.Helper()
	home, err := r.hub.FindHome(r.t.Context(), "hpd", session)
	if err != nil {
		r.t.Fatal(err)
	}
	page, err := r.hub.Entries(r.t.Context(), hub.EntryQuery{Type: adapter.Type, Home: home.ID, Prefix: "condensed/"})
	if err != nil {
		r.t.Fatal(err)
	}
	return len(page.Entries)
}

// forkText forks a session's main branch after the message, and returns the text in
// the fork and how many records were read for it.
func (r *rig) forkText(session, id string) (text string, records int64) {
	r.t.Helper()
	before := r.records.Load()
	a := r.do("POST", "/agents/far/sessions/"+session+"/branches/main/fork", object{"fromMessageId": "m", "newBranchId": id})
	records = r.records.Load() - before
	if a.status != 201 {
		r.t.Fatalf("fork: %d %s", a.status, a.raw)
	}
	for _, e := range only(r.history(session, id), "TEXT_DELTA") {
		if e["messageId"] == "m" {
			text += e["text"].(string)
		}
	}
	return text, records
}

// The cost of a fork depends on its messages, not on the deltas in which they were
// streamed.
func TestForksReadNoDeltas(t *testing.T) {
	t.Parallel()
	c := &spec.T{T: t}
	r := newRig(t, hpd.Config{})
	p := r.producer("far")
	few, many := r.session(), r.session()
	_, want := p.streamed(few, 10, true)
	text, cheap := r.forkText(few, "short")
	c.Equal(text, want)
	c.Equal(r.parts(few), 0) // it is short already
	_, want = p.streamed(many, scale.N(3000), true)
	bound := 10*cheap + 500
	forks := 0
	cheaply := func() { // the log is condensed part by part, in the background, which reads too
		t.Helper()
		var text string
		eventually(t, func() bool {
			forks++
			var cost int64
			text, cost = r.forkText(many, fmt.Sprint("fork", forks))
			return cost < bound
		})
		c.Equal(text == want, true)
	}
	cheaply()
	r.restart()
	r.do("GET", "/agents/far/sessions/"+many+"/branches/main/runs/active", nil) // this loads the branch
	cheaply()
	p = r.producer("far") // and when the log continues after it
	p.input("far", many, "main", "more")
	c.Equal(p.complete(p.work.named("input"), object{"status": "completed"}).status, 200)
	cheaply()
}

// The fork of a log that was never condensed, while its run is active, is complete
// too; so is the fork of one that was condensed in the middle of a message.
func TestForkWhileCondensing(t *testing.T) {
	t.Parallel()
	c := &spec.T{T: t}
	r := newRig(t, hpd.Config{})
	p := r.producer("far")
	s := r.session()
	w, want := p.streamed(s, 1500, false)
	c.Equal(r.parts(s), 0)
	text, _ := r.forkText(s, "one")
	c.Equal(text == want, true)
	eventually(t, func() bool { return r.parts(s) > 0 }) // the fork started it
	c.Equal(p.publish(w, "", delta("more")).status, 202)
	text, _ = r.forkText(s, "two")
	c.Equal(text == want+"more", true)
	c.Equal(p.complete(w, object{"status": "completed"}).status, 200)
	// A fork of a fork is one, too.
	a := r.do("POST", "/agents/far/sessions/"+s+"/branches/two/fork", object{"fromMessageId": "m", "newBranchId": "three"})
	c.Equal(a.status, 201)
	c.Equal(len(only(r.history(s, "three"), "TEXT_DELTA")) > 0, true)
}
