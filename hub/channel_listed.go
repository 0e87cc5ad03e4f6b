package hub

import (
	"slices"

	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/hub/internal/expect"
	"github.com/parley-hub/parley/hub/internal/schema"
	"github.com/parley-hub/parley/journal"
)

// lists reports whether the set of agents that have the channel in their lists
// changes with its envelopes. Otherwise the set is fixed at the creation: the
// participants.
func (b *batch) lists() bool {
	_, folds := b.ch.adapter.(channel.MemberFolder)
	return folds || b.meta.MembersOf != ""
}

// list updates the lists of channels: if the members are folded, for those who join and
// leave; if they are another channel's, which may have thousands, for those who spoke or
// were addressed. The end of the channel moves it from the lists of open channels to those
// of ended ones.
func (b *batch) list() {
	listed := b.currentMarks().Listed
	if !b.lists() && len(listed) == 0 {
		return
	}
	var joined, left []string
	if b.meta.MembersOf != "" {
		joined = b.unlisted(listed)
	} else if folder, ok := b.ch.adapter.(channel.MemberFolder); ok && b.state != nil {
		joined, left = difference(listed, folder.Members(b.meta, b.state))
	}
	home, own := schema.Split(b.ch.id)
	ended := b.meta.State.Terminal()
	past := func(agent string) journal.IndexPut {
		return journal.IndexPut{Key: schema.Key(schema.IndexMember, agent, own), Value: []byte(home)}
	}
	if len(joined) > 0 {
		b.sideNote(schema.SideRecord{Kind: schema.SideListed, Agents: joined}, func(r *journal.Record) {
			for _, agent := range joined {
				put := past(agent)
				if !ended {
					put = journal.IndexPut{Key: schema.Key(schema.IndexTurn, agent, own), Value: schema.ListedIn(home, dialectOf(b.ch.adapter))}
				}
				r.Put = append(r.Put, put)
			}
		})
	}
	if len(left) > 0 {
		b.sideNote(schema.SideRecord{Kind: schema.SideUnlisted, Agents: left}, func(r *journal.Record) {
			for _, agent := range left {
				r.Remove = append(r.Remove, schema.Key(schema.IndexMember, agent, own), schema.Key(schema.IndexTurn, agent, own))
			}
		})
	}
	if ended && !b.ch.meta.State.Terminal() {
		last := &b.side[len(b.side)-1] // the end wrote one
		for _, agent := range b.currentMarks().Listed {
			last.Remove, last.Put = append(last.Remove, schema.Key(schema.IndexTurn, agent, own)), append(last.Put, past(agent))
		}
	}
}

// unlisted returns the agents that speak in the batch or are addressed by it, and are not
// listed.
func (b *batch) unlisted(listed []string) (agents []string) {
	add := func(agent string) {
		if _, known := slices.BinarySearch(listed, agent); known || agent == "" || slices.Contains(agents, agent) {
			return
		}
		if len(agents) < b.hub.opts.Limits.Participants && b.hub.registry.ByID(agent) != nil {
			agents = append(agents, agent)
		}
	}
	for i := range b.items {
		e := b.items[i].envelope
		if b.items[i].where == channel.Live {
			continue
		}
		if !HubMade(e) {
			add(e.Sender)
		}
		add(e.To)
		for _, agent := range e.Audience {
			add(agent)
		}
	}
	return agents
}

// fewMembers is the number of members up to which looking each up is cheaper than reading
// the whole list.
const fewMembers = 16

// difference returns the agents to add to a sorted list, and to remove, so that it equals
// the members.
func difference(listed []string, in channel.Members) (joined, left []string) {
	if len(listed) == in.Count() && len(listed) <= fewMembers && !slices.ContainsFunc(listed, func(agent string) bool { return !in.Has(agent) }) {
		return nil, nil
	}
	kept := 0
	in.Each(func(agent string) bool {
		if _, ok := slices.BinarySearch(listed, agent); ok {
			kept++
		} else {
			joined = append(joined, agent)
		}
		return true
	})
	if kept < len(listed) {
		for _, agent := range listed {
			if !in.Has(agent) {
				left = append(left, agent)
			}
		}
	}
	return joined, left
}

// noteActivity moves the channel in the list by activity, at most once a minute.
func (b *batch) noteActivity() {
	if len(b.history) == 0 || b.meta.State.Terminal() {
		return
	}
	at := b.thisMinute()
	if at <= b.watch.Active {
		return
	}
	b.sideNote(schema.SideRecord{Kind: schema.SideActive, Due: int64(at)}, func(r *journal.Record) {
		r.Remove = b.activeKey()
		b.watch.Active = at
		r.Put = []journal.IndexPut{b.activePut()}
	})
}

func (b *batch) thisMinute() expect.Instant {
	return expect.InstantOf(b.now.Truncate(schema.ActivePrecision))
}

func (b *batch) activePut() journal.IndexPut { return b.activePutAt(b.watch.Active) }

func (b *batch) activePutAt(at expect.Instant) journal.IndexPut {
	home, own := schema.Split(b.ch.id)
	return journal.IndexPut{Key: schema.ActiveKey(at.Time(), own), Value: schema.ListedIn(home, dialectOf(b.ch.adapter))}
}

// activeKey is the channel's index entry by activity, if it has one.
func (b *batch) activeKey() [][]byte {
	if b.watch.Active.IsZero() {
		return nil
	}
	_, own := schema.Split(b.ch.id)
	return [][]byte{schema.ActiveKey(b.watch.Active.Time(), own)}
}

// checkPut is the index entry of the next check of a channel's expectations, if there
// is one.
func (b *batch) checkPut(at expect.Instant) []journal.IndexPut {
	if at.IsZero() {
		return nil
	}
	return []journal.IndexPut{{Key: schema.DueKey(schema.DueExpectation, at.Time(), b.ch.id)}}
}

// watchFrom sets a new channel's deadlines.
func (b *batch) watchFrom(m *channel.Metadata) error {
	if _, err := b.hub.readPlan(m); err != nil {
		return err
	}
	b.watch.Active = b.thisMinute()
	record := journal.Record{Put: append(make([]journal.IndexPut, 0, 2), b.activePut())}
	if !m.ExpiresAt.IsZero() {
		record.Put = append(record.Put, journal.IndexPut{Key: schema.DueKey(schema.DueTTL, m.ExpiresAt, m.ID)})
	}
	if len(m.PendingAcks) > 0 {
		record.Put = append(record.Put, journal.IndexPut{Key: schema.DueKey(schema.DueInvite, b.inviteDue(), m.ID)})
	}
	b.side = append(make([]journal.Record, 0, 1), record)
	b.scheduling = true
	return nil
}

// writeSchedule writes the channel's entries in the lists by time, if the batch is the
// first that has them: in the first side record, or in the record of the creation if the
// channel has no side log yet. The first batch that writes to the side log moves them
// there, after records whose numbers may be known already.
func (b *batch) writeSchedule() {
	at, told := &b.watch, &b.ch.watch
	switch {
	case b.scheduling && len(b.side) == 1 && b.ch.heads.side == 0 && len(b.side[0].Put) == 1:
		created := &b.metas[0]
		created.Put = append(append(created.Put, b.side[0].Put...), b.checkPut(at.NextCheck)...)
		created.Data = schema.WithSchedule(created.Data, schema.Schedule{Active: int64(at.Active), Check: int64(at.NextCheck)})
		b.side = nil
	case b.scheduling:
		b.side[0].Put = append(b.side[0].Put, b.checkPut(at.NextCheck)...)
		b.side[0].Data = schema.EncodeScheduled(int64(at.Active), int64(at.NextCheck))
	case b.ch.heads.side == 0 && len(b.side) > 0 && !told.Active.IsZero():
		given := journal.Record{Data: schema.EncodeListed()}
		for _, put := range append(b.checkPut(told.NextCheck), b.activePutAt(told.Active)) {
			given.Remove = append(given.Remove, put.Key)
		}
		b.metas = append(b.metas, given)
		if !b.meta.State.Terminal() {
			b.side = append(b.side, journal.Record{
				Data: schema.EncodeScheduled(int64(at.Active), int64(at.NextCheck)), Put: append(b.checkPut(at.NextCheck), b.activePut()),
			})
		}
	}
}
