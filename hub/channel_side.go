package hub

import (
	"context"
	"slices"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub/internal/expect"
	"github.com/parley-hub/parley/hub/internal/schema"
	"github.com/parley-hub/parley/journal"
)

// marks is what the side log says of a channel.
type marks struct {
	fired []string // keys of expectations
	hid   []string // participants
	out   []string // participants
	back  []string // participants that were hidden, until they are replayed to
	tasks []string // the channel's tasks that have not ended
	due   []deadline
	// listed is who has entries in the lists of its channels, sorted, where the
	// members are not the participants of the creation.
	listed []string
	open   []openRequest
	asked  []expect.Asked // the open requests, and the last ones that ended
}

func (m *marks) hidden(agent string) bool  { return slices.Contains(m.hid, agent) }
func (m *marks) removed(agent string) bool { return slices.Contains(m.out, agent) }

func (m marks) after(r schema.SideRecord) marks {
	switch r.Kind {
	case schema.SideFired:
		m.fired = append(slices.Clip(m.fired), r.Fired...)
	case schema.SideHidden:
		m.hid = append(slices.Clip(m.hid), r.Agent)
	case schema.SideUnhidden:
		m.hid = without(m.hid, r.Agent)
		m.back = append(slices.Clip(m.back), r.Agent)
	case schema.SideRemoved:
		m.out = append(slices.Clip(m.out), r.Agent)
	case schema.SideTask:
		m.tasks = append(slices.Clip(m.tasks), r.Task)
	case schema.SideTaskEnded:
		m.tasks = without(m.tasks, r.Task)
	case schema.SideDeadline:
		m.due = deadlinesAfter(m.due, r)
	case schema.SideListed:
		m.listed = sortedWith(m.listed, r.Agents)
	case schema.SideUnlisted:
		m.listed = sortedWithout(m.listed, r.Agents)
	case schema.SideRequest:
		if asked, err := readRequest(r); err == nil {
			m.open = append(slices.Clip(m.open), openRequest{asked, r.Asked})
			m.asked = append(slices.Clip(m.asked), expect.Asked{Request: r.Name, By: asked.AskedBy, From: expect.InstantOf(asked.AskedAt)})
		}
	case schema.SideRequestEnded:
		m.open = slices.DeleteFunc(slices.Clone(m.open), func(q openRequest) bool { return q.ID == r.Name })
		m.asked = answeredAt(m.asked, r)
	case schema.SideEnded:
		m.fired, m.tasks, m.due, m.asked = nil, nil, nil, nil
	}
	return m
}

func (m marks) none() bool {
	return len(m.fired)+len(m.hid)+len(m.out)+len(m.back)+len(m.tasks)+len(m.due)+len(m.listed)+len(m.open)+len(m.asked) == 0
}

// maxAnswered bounds the ended requests whose times a channel keeps: those of one
// turn matter.
const maxAnswered = 64

// answeredAt notes when a request ended.
func answeredAt(list []expect.Asked, r schema.SideRecord) []expect.Asked {
	e, err := envelope.Unmarshal(r.Envelope)
	if err != nil {
		return list
	}
	list = slices.Clone(list)
	ended := 0
	for i := range list {
		if list[i].Request == r.Name {
			list[i].To = expect.InstantOf(e.CreatedAt)
		}
		if !list[i].To.IsZero() {
			ended++
		}
	}
	if oldest := slices.IndexFunc(list, func(a expect.Asked) bool { return !a.To.IsZero() }); ended > maxAnswered {
		list = slices.Delete(list, oldest, oldest+1)
	}
	return list
}

// muted lists the participants that get no live deliveries.
func (m marks) muted() []string { return slices.Concat(m.hid, m.back) }

// sideNote adds a record to the side log; finish may add what it does to the
// index.
func (b *batch) sideNote(r schema.SideRecord, finish func(*journal.Record)) {
	data, err := r.Encode()
	if err != nil {
		panic("hub: side record: " + err.Error()) // plain strings always encode
	}
	record := journal.Record{Data: data}
	if finish != nil {
		finish(&record)
	}
	b.side = append(b.side, record)
	before := b.currentMarks()
	// Also keep marks that became empty, or the old ones would stay.
	if next := before.after(r); !next.none() || !before.none() {
		b.marks = &next
	}
}

func (b *batch) currentMarks() marks {
	switch {
	case b.marks != nil:
		return *b.marks
	case b.ch.extras != nil:
		return b.ch.extras.marks
	}
	return marks{}
}

// Side returns the envelopes that a channel keeps beside its history, in order.
// Each has the sequence of the last envelope of the history before it.
func (h *Hub) Side(ctx context.Context, channelID string) ([]*envelope.Envelope, error) {
	var found []*envelope.Envelope
	log := h.tenant.Channel(channelID).Side()
	for entry, err := range journal.Records(ctx, h.journal, log, journal.ReadOptions{}) {
		if err != nil {
			return nil, unavailable(err)
		}
		var r schema.SideRecord
		if err := json.Unmarshal(entry.Data, &r, jsontext.AllowDuplicateNames(true)); err != nil || len(r.Envelope) == 0 {
			continue
		}
		e, err := envelope.Unmarshal(r.Envelope)
		if err != nil {
			return nil, fault.Wrap(fault.Internal, err, "%v", err)
		}
		e.Seq = r.After
		found = append(found, e)
	}
	return found, nil
}

// watchFrom sets a new channel's deadlines.
func (b *batch) watchFrom(m *channel.Metadata) error {
	if _, err := b.hub.readPlan(m); err != nil {
		return err
	}
	b.watch.Active = b.thisMinute()
	b.sideNote(schema.SideRecord{Kind: schema.SideScheduled, Due: int64(b.watch.Active)}, func(r *journal.Record) {
		r.Put = append(r.Put, b.activePut())
		if !m.ExpiresAt.IsZero() {
			r.Put = append(r.Put, journal.IndexPut{Key: schema.DueKey(schema.DueTTL, m.ExpiresAt, m.ID)})
		}
		if len(m.PendingAcks) > 0 {
			r.Put = append(r.Put, journal.IndexPut{Key: schema.DueKey(schema.DueInvite, b.inviteDue(), m.ID)})
		}
	})
	return nil
}

// inviteDue is when an opening fails because acks are missing.
func (b *batch) inviteDue() time.Time { return b.meta.CreatedAt.Add(b.hub.opts.InviteAckTimeout) }
