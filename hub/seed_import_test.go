package hub_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub"
	"github.com/parley-hub/parley/journal"
	"github.com/parley-hub/parley/journal/mem"
	"github.com/parley-hub/parley/request"
)

func each(list []*envelope.Envelope, last error) iter.Seq2[hub.ImportedEnvelope, error] {
	return func(yield func(hub.ImportedEnvelope, error) bool) {
		for _, e := range list {
			if !yield(hub.ImportedEnvelope{Envelope: e.Clone()}, nil) {
				return
			}
		}
		if last != nil {
			yield(hub.ImportedEnvelope{}, last)
		}
	}
}

// An imported channel has its envelopes' ids, times and senders, has ended, names
// its origin, stays after a restart, and was not delivered to anyone.
func TestImport(t *testing.T) {
	t.Parallel()
	stored(t, "a conversation", hub.Options{}, func(t *testing.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		id := r.open("conversation", a, b)
		r.say(a, id, "one")
		r.say(b, id, "two")
		original, history := r.channel(id), r.log(id)
		before := len(a.inbox()) + len(b.inbox())
		m, err := r.Import(ctx, hub.Imported{Metadata: original, Envelopes: each(history, nil)})
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			got := r.channel(m.ID)
			if got.State != channel.Closed || got.CloseReason != "imported" || got.Labels[hub.LabelImported] != id || got.ID == id || got.Creator != a.id {
				t.Errorf("got %+v", got)
			}
			copied := r.log(m.ID)
			for n, e := range copied {
				want := history[n].Clone()
				if want.Channel = m.ID; cmp.Diff(want, e) != "" {
					t.Error(cmp.Diff(want, e))
				}
			}
			if len(copied) != len(history) {
				t.Errorf("%d envelopes of %d", len(copied), len(history))
			}
			r.restart()
		}
		if n := len(a.inbox()) + len(b.inbox()); n != before {
			t.Errorf("%d envelopes were told of the import", n-before)
		}
		if _, err := r.Turns(ctx, b.id); err != nil {
			t.Error(err)
		}
		if list, _, err := r.Channels(ctx, hub.ListOptions{Open: true}); err != nil || len(list) != 1 {
			t.Errorf("%d channels are open, %v", len(list), err)
		}
		if list, _, err := r.Channels(ctx, hub.ListOptions{Label: []hub.Label{{Key: hub.LabelImported, Value: id}}}); err != nil || len(list) != 1 {
			t.Errorf("%d channels by label, %v", len(list), err)
		}
	})
}

// beside yields envelopes of which every hundredth is in the side log, and changes
// the last of those.
func beside(list []*envelope.Envelope, last func(*envelope.Envelope)) iter.Seq2[hub.ImportedEnvelope, error] {
	return func(yield func(hub.ImportedEnvelope, error) bool) {
		for n, e := range list {
			e := hub.ImportedEnvelope{Envelope: e.Clone(), Side: n%100 == 0}
			if n == 1100 {
				last(e.Envelope)
			}
			if !yield(e, nil) {
				return
			}
		}
	}
}

// Envelopes of the side log are folded in their place, keep ids and times, and are
// not requests of this hub.
func TestImportKeepsWhatWasBeside(t *testing.T) {
	t.Parallel()
	runs(t, "in its place", withLedger, func(t *testing.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		id := r.open("ledger", a, b)
		if _, err := r.side(b, id, "ledger.note"); err != nil {
			t.Fatal(err)
		}
		r.post(a, id, "ledger.one", `{}`)
		asked := r.ask(a, id)
		if _, err := r.Answer(ctx, asked.ID, hub.Answer{Choice: "approve"}, nil); err != nil {
			t.Fatal(err)
		}
		r.post(a, id, "ledger.all", `{}`)
		r.post(a, id, "ledger.two", `{}`)
		open := r.ask(a, id)
		want, err := r.Side(ctx, id)
		if err != nil || len(want) != 5 {
			t.Fatalf("%d beside it, %v", len(want), err)
		}
		var all []hub.ImportedEnvelope
		rest := want
		put := func(through uint64) {
			for ; len(rest) > 0 && rest[0].Seq <= through; rest = rest[1:] {
				all = append(all, hub.ImportedEnvelope{Envelope: rest[0].Clone(), Side: true})
			}
		}
		put(0)
		for _, e := range r.log(id) {
			all = append(all, hub.ImportedEnvelope{Envelope: e.Clone()})
			put(e.Seq)
		}
		m, err := r.Import(ctx, hub.Imported{Metadata: r.channel(id), Envelopes: func(yield func(hub.ImportedEnvelope, error) bool) {
			for _, e := range all {
				if !yield(e, nil) {
					return
				}
			}
		}})
		if err != nil {
			t.Fatal(err)
		}
		for _, again := range []func(){func() {}, func() { r.restart() }, func() { r.crash() }, func() { r.Evict() }} {
			again()
			if got := r.state(m.ID); got != r.state(id) {
				t.Errorf("state %s, of %s", got, r.state(id))
			}
			got, err := r.Side(ctx, m.ID)
			if err != nil || len(got) != len(want) {
				t.Fatalf("%d of %d beside it, %v", len(got), len(want), err)
			}
			for n, e := range got {
				original := want[n].Clone()
				if original.Channel = m.ID; cmp.Diff(original, e) != "" {
					t.Error(cmp.Diff(original, e))
				}
			}
			if page, err := r.Requests(ctx, hub.RequestQuery{}); err != nil || len(page.Requests) != 2 || page.Requests[0].Channel != id {
				t.Errorf("requests: %+v, %v", page.Requests, err)
			}
			r.importedAs(m, asked, open)
		}
	})
}

// importedAs checks that a copy lists the answered request and the open one, under
// their ids, and that both are read-only.
func (r *rig) importedAs(m *channel.Metadata, answered, open hub.Request) {
	r.t.Helper()
	ids := []string{answered.ID, open.ID}
	for name, c := range map[string]struct {
		query hub.RequestQuery
		want  []string
	}{
		"all":       {hub.RequestQuery{}, ids},
		"newest":    {hub.RequestQuery{Newest: true, Limit: 1}, []string{open.ID, answered.ID}},
		"by pages":  {hub.RequestQuery{Limit: 1}, ids},
		"before":    {hub.RequestQuery{Before: open.ID}, ids[:1]},
		"answered":  {hub.RequestQuery{State: request.Answered}, ids[:1]},
		"cancelled": {hub.RequestQuery{State: request.Cancelled}, ids[1:]},
		"open":      {hub.RequestQuery{State: request.Open}, nil},
		"a member":  {hub.RequestQuery{As: m.Creator}, ids},
		"others":    {hub.RequestQuery{As: strings.Repeat("0", 32)}, nil},
		"of nobody": {hub.RequestQuery{AskedBy: strings.Repeat("0", 32)}, nil},
	} {
		c.query.Channel = m.ID
		if got := r.requestIDs(c.query); !slices.Equal(got, c.want) {
			r.t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
	if _, err := r.Requests(ctx, hub.RequestQuery{Channel: m.ID, After: m.ID}); fault.CodeOf(err) != fault.Invalid {
		r.t.Errorf("after a request that is none: %v", err)
	}
	page, err := r.Requests(ctx, hub.RequestQuery{Channel: m.ID})
	if err != nil || len(page.Requests) != 2 {
		r.t.Fatalf("%+v, %v", page, err)
	}
	first, second := page.Requests[0], page.Requests[1]
	original := r.request(answered.ID)
	original.Channel, original.Similar = m.ID, nil
	if diff := cmp.Diff(original, first); diff != "" {
		r.t.Error(diff)
	}
	if second.Reason != "the channel was imported before anybody answered" || !second.AskedAt.Equal(open.AskedAt) || !second.EndedAt.Equal(m.ClosedAt) || second.Channel != m.ID {
		r.t.Errorf("got %+v", second)
	}
}

// entriesRead counts the records that are read from a journal.
type entriesRead struct {
	journal.Engine
	count atomic.Int64
}

func (r *entriesRead) Read(ctx context.Context, log journal.LogName, o journal.ReadOptions) (journal.Page, error) {
	page, err := r.Engine.Read(ctx, log, o)
	r.count.Add(int64(len(page.Entries)))
	return page, err
}

// A page of the requests of an imported channel reads these requests, and not the
// whole side log.
func TestPagesOfImportedRequests(t *testing.T) {
	t.Parallel()
	runs(t, "of many", withLedger, func(t *testing.T, r *rig) {
		const many, page = 60, 5
		a, b := r.agent("alice"), r.agent("bob")
		id := r.open("ledger", a, b)
		var want []string
		for range many {
			want = append(want, r.ask(a, id).ID)
		}
		side, err := r.Side(ctx, id)
		if err != nil {
			t.Fatal(err)
		}
		engine, err := mem.Open(mem.Options{Shards: shards})
		if err != nil {
			t.Fatal(err)
		}
		counted := &entriesRead{Engine: engine}
		h, err := hub.Open(ctx, counted, hub.Options{Adapters: r.opts.Adapters, Log: r.opts.Log})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { h.Close(); _ = engine.Close() }()
		m, err := h.Import(ctx, hub.Imported{Metadata: r.channel(id), Envelopes: func(yield func(hub.ImportedEnvelope, error) bool) {
			for _, e := range side {
				if !yield(hub.ImportedEnvelope{Envelope: e.Clone(), Side: true}, nil) {
					return
				}
			}
		}})
		if err != nil {
			t.Fatal(err)
		}
		for _, newest := range []bool{false, true} {
			var got []string
			for q := (hub.RequestQuery{Channel: m.ID, Limit: page, Newest: newest}); ; {
				before := counted.count.Load()
				list, err := h.Requests(ctx, q)
				if err != nil {
					t.Fatal(err)
				}
				if read := counted.count.Load() - before; len(got) > 0 && read > 2*page {
					t.Errorf("a page of %d reads %d records of %d", page, read, len(side))
				}
				for _, one := range list.Requests {
					got = append(got, one.ID)
				}
				if q.After = list.Next; list.Next == "" {
					break
				}
			}
			if newest {
				slices.Reverse(got)
			}
			if !slices.Equal(got, want) {
				t.Errorf("newest first %v: %d requests of %d: %q", newest, len(got), many, got)
			}
		}
	})
}

// Agents of another hub may be unknown here; the type of channel may not.
func TestImportFromElsewhere(t *testing.T) {
	t.Parallel()
	runs(t, "of strangers", hub.Options{}, func(t *testing.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		m := *r.channel(r.open("discussion", a, b))
		m.Creator = "0123456789abcdef0123456789abcdef"
		m.Participants = []channel.Participant{{Agent: m.Creator, Role: channel.Initiator}, {Agent: "ffffffffffffffffffffffffffffffff", Role: channel.Member, Order: 1}}
		said := &envelope.Envelope{ID: "000000000000000000000000000000aa", Sender: m.Creator, Type: envelope.TypeText, Data: []byte(`{"text":"hi"}`), CreatedAt: time.Unix(1, 0).UTC()}
		got, err := r.Import(ctx, hub.Imported{Metadata: &m, Envelopes: each([]*envelope.Envelope{said}, nil), From: "elsewhere"})
		if err != nil || got.Labels[hub.LabelImported] != "elsewhere" {
			t.Fatalf("%+v, %v", got, err)
		}
		if e := r.log(got.ID)[0]; e.ID != said.ID || !e.CreatedAt.Equal(said.CreatedAt) || e.Sender != m.Creator {
			t.Errorf("got %+v", e)
		}
		other := *m.Manifest
		other.Type = "seance"
		m.Manifest = &other
		if _, err := r.Import(ctx, hub.Imported{Metadata: &m, Envelopes: each(nil, nil)}); err == nil || !strings.Contains(err.Error(), "seance") {
			t.Errorf("got %v", err)
		}
	})
}

// An import that is damaged, or exceeds a bound, leaves nothing behind.
func TestABrokenImportLeavesNothing(t *testing.T) {
	t.Parallel()
	runs(t, "at each place", hub.Options{Limits: hub.Limits{EventBytes: 1000}}, func(t *testing.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		id := r.open("conversation", a, b)
		m := r.channel(id)
		var many []*envelope.Envelope
		for n := range 1200 {
			many = append(many, &envelope.Envelope{ID: fmt.Sprintf("%032x", n+1), Sender: a.id, Type: envelope.TypeText, Data: []byte(`{"text":"x"}`)})
		}
		large := many[3].Clone()
		large.ID, large.Data = fmt.Sprintf("%032x", 5000), []byte(`{"text":"`+strings.Repeat("x", 1000)+`"}`)
		for name, in := range map[string]iter.Seq2[hub.ImportedEnvelope, error]{
			"an error":          each(many, errors.New("cut off")),
			"an early error":    each(nil, errors.New("cut off")),
			"beside, no id":     beside(many, func(e *envelope.Envelope) { e.ID = "x" }),
			"beside, too large": beside(many, func(e *envelope.Envelope) { e.Data = large.Data }),
			"too large":         each(append(append([]*envelope.Envelope{}, many...), large), nil),
			"ids that go back":  each(append(append([]*envelope.Envelope{}, many...), many[0]), nil),
			"one of the future": each([]*envelope.Envelope{{ID: strings.Repeat("f", 32), Sender: a.id, Type: envelope.TypeText, Data: []byte(`{}`)}}, nil),
		} {
			if _, err := r.Import(ctx, hub.Imported{Metadata: m, Envelopes: in}); err == nil {
				t.Errorf("%s was imported", name)
			}
		}
		if list, _, err := r.Channels(ctx, hub.ListOptions{}); err != nil || len(list) != 1 {
			t.Errorf("%d channels, %v", len(list), err)
		}
		wide := *m
		for n := range 10_000 {
			wide.Participants = append(wide.Participants, channel.Participant{Agent: fmt.Sprint(n)})
		}
		if _, err := r.Import(ctx, hub.Imported{Metadata: &wide, Envelopes: each(nil, nil)}); fault.CodeOf(err) != fault.TooLarge {
			t.Errorf("got %v", err)
		}
	})
}
