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
	"github.com/parley-hub/parley/journal"
)

// sideRecord is one record of a channel's side log: the hub's bookkeeping, and
// envelopes that adapters keep out of the history.
type sideRecord struct {
	Kind  string   `json:"kind"`
	Agent string   `json:"agent,omitzero"`
	Fired []string `json:"fired,omitzero"`
	Due   int64    `json:"due,omitzero"`  // in nanoseconds; 0: not any more
	Name  string   `json:"name,omitzero"` // of a deadline
	Task  string   `json:"task,omitzero"`
	// Envelope is the binary record of an adapter's side draft.
	Envelope []byte `json:"envelope,omitzero"`
}

const (
	sideScheduled = "scheduled" // deadlines were set or moved
	sideOpened    = "opened"
	sideEnded     = "ended"
	sideFired     = "fired"    // expectations that fired, and fire no more
	sideHidden    = "hidden"   // a participant is told nothing until it speaks
	sideUnhidden  = "unhidden" // it spoke
	sideRemoved   = "removed"  // a participant may not speak any more
	sideDraft     = "draft"
	sideCheck     = "look"     // when the expectations are looked at next
	sideDeadline  = "deadline" // the adapter wants to be reminded
	sideTask      = "task"     // a task of the channel began
	sideTaskEnded = "task_ended"
)

// marks is what the side log says of a channel.
type marks struct {
	fired []string // keys of expectations
	hid   []string // participants
	out   []string // participants
	back  []string // participants that were hidden, until they are replayed to
	tasks []string // the channel's tasks that have not ended
	due   []deadline
}

func (m *marks) hidden(agent string) bool  { return slices.Contains(m.hid, agent) }
func (m *marks) removed(agent string) bool { return slices.Contains(m.out, agent) }

func (m marks) after(r sideRecord) marks {
	switch r.Kind {
	case sideFired:
		m.fired = append(slices.Clip(m.fired), r.Fired...)
	case sideHidden:
		m.hid = append(slices.Clip(m.hid), r.Agent)
	case sideUnhidden:
		m.hid = without(m.hid, r.Agent)
		m.back = append(slices.Clip(m.back), r.Agent)
	case sideRemoved:
		m.out = append(slices.Clip(m.out), r.Agent)
	case sideTask:
		m.tasks = append(slices.Clip(m.tasks), r.Task)
	case sideTaskEnded:
		m.tasks = without(m.tasks, r.Task)
	case sideDeadline:
		m.due = deadlinesAfter(m.due, r)
	case sideEnded:
		m.fired, m.tasks, m.due = nil, nil, nil
	}
	return m
}

func (m marks) none() bool {
	return len(m.fired)+len(m.hid)+len(m.out)+len(m.back)+len(m.tasks)+len(m.due) == 0
}

// muted is whom live deliveries are held back from.
func (m marks) muted() []string { return slices.Concat(m.hid, m.back) }

// sideNote adds a record to the side log; finish may add what it does to the
// index.
func (b *batch) sideNote(r sideRecord, finish func(*journal.Record)) {
	data, err := json.Marshal(r)
	if err != nil {
		panic("hub: side record: " + err.Error()) // plain strings always encode
	}
	record := journal.Record{Data: data}
	if finish != nil {
		finish(&record)
	}
	b.side = append(b.side, record)
	before := b.currentMarks()
	// What clears the last mark must be kept too, or the mark would stay.
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

func (h *Hub) loadSide(ctx context.Context, ch *loadedChannel) error {
	var m marks
	log := ch.partition().In(familySide, only)
	for entry, err := range journal.Records(ctx, h.journal, log, journal.ReadOptions{}) {
		if err != nil {
			return unavailable(err)
		}
		var r sideRecord
		if err := json.Unmarshal(entry.Data, &r); err != nil {
			return fault.Wrap(fault.Internal, err, "side record %d of channel '%s' cannot be read: %v", entry.Seq, ch.id, err)
		}
		m = m.after(r)
		if r.Kind == sideCheck {
			ch.watch.nextCheck = instant(r.Due)
		}
		ch.heads.side = entry.Seq
	}
	if m.back = nil; !m.none() {
		ch.ensureExtras().marks = m
		ch.readers.hide(m.muted())
	}
	return nil
}

// sideEnvelope writes an adapter's envelope into the side log, stamped.
func (b *batch) sideEnvelope(e *envelope.Envelope) error {
	id, err := b.hub.minter.Mint(b.now, b.lastID)
	if err != nil {
		return unavailable(err)
	}
	e.ID, e.CreatedAt, e.Channel = id, b.now, b.ch.id
	data, err := e.Append(nil)
	if err != nil {
		return fault.Wrap(fault.TooLarge, err, "%v", err)
	}
	b.sideNote(sideRecord{Kind: sideDraft, Envelope: data}, nil)
	return nil
}

// Side returns the envelopes that the channel's adapter keeps beside its
// history, in order.
func (h *Hub) Side(ctx context.Context, channelID string) ([]*envelope.Envelope, error) {
	var found []*envelope.Envelope
	log := channelPartition(channelID).In(familySide, only)
	for entry, err := range journal.Records(ctx, h.journal, log, journal.ReadOptions{}) {
		if err != nil {
			return nil, unavailable(err)
		}
		var r sideRecord
		if err := json.Unmarshal(entry.Data, &r, jsontext.AllowDuplicateNames(true)); err != nil || r.Kind != sideDraft {
			continue
		}
		e, err := envelope.Unmarshal(r.Envelope)
		if err != nil {
			return nil, fault.Wrap(fault.Internal, err, "%v", err)
		}
		e.Seq = entry.Seq
		found = append(found, e)
	}
	return found, nil
}

// watchFrom sets a new channel's deadlines.
func (b *batch) watchFrom(m *channel.Metadata) error {
	if _, err := b.hub.readPlan(m); err != nil {
		return err
	}
	b.sideNote(sideRecord{Kind: sideScheduled}, func(r *journal.Record) {
		if !m.ExpiresAt.IsZero() {
			r.Put = append(r.Put, journal.IndexPut{Key: dueKey(dueTTL, m.ExpiresAt, m.ID)})
		}
		if len(m.PendingAcks) > 0 {
			r.Put = append(r.Put, journal.IndexPut{Key: dueKey(dueInvite, b.inviteDue(), m.ID)})
		}
	})
	return nil
}

// inviteDue is when an opening fails for want of acks.
func (b *batch) inviteDue() time.Time { return b.meta.CreatedAt.Add(b.hub.opts.InviteAckTimeout) }
