package hub

import (
	"cmp"
	"context"
	"iter"
	"slices"
	"strings"

	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub/internal/schema"
	"github.com/parley-hub/parley/journal"
)

// Label is a label that a channel carries.
type Label struct{ Key, Value string }

// ListOptions selects channels.
type ListOptions struct {
	Agent  string              // only those it takes part in
	Open   bool                // only those that have not ended
	Label  []Label             // only those that carry all of these
	Type   string              // only those of this type
	State  channel.Lifecycle   // only those in this state; Unset is any
	States []channel.Lifecycle // only those in one of these states; none is any
	Text   string              // only those with it in their id, labels, type or names of participants
	// WaitingFor selects those in which one of these is expected to speak.
	WaitingFor []string
	Overdue    bool // only those in which a turn is overdue
	// Invited selects the pending ones that wait for this agent's answer.
	Invited string
	Sort    ChannelSort
	After   string // the place after which the page begins: Next of the page before
	Limit   int    // 0: 50
	Newest  bool   // the newest first
	// Dialect leaves out the channels that only clients of another dialect see;
	// empty leaves out none.
	Dialect string

	by *Caller // only those that it may see; see Access
}

// ChannelSort is the order of a list of channels.
type ChannelSort uint8

// Orders. ByActivity and ByDue list channels that have not ended: by when something was
// last said, to the minute, and by when something expected is due. Channels that are
// overdue or wait for an agent are listed by when the turn is due, also after it was
// reported; those that are never due come last.
const (
	ByAge ChannelSort = iota
	ByActivity
	ByDue
)

// ListedChannel is a channel with its place in a list.
type ListedChannel struct {
	*channel.Metadata
	Place string
}

// Channels lists channels by age, including ended ones. Next continues after the last, and
// is empty at the end.
func (h *Hub) Channels(ctx context.Context, o ListOptions) (list []*channel.Metadata, next string, err error) {
	o.Sort = ByAge
	for {
		page, next, err := h.ChannelPage(ctx, o)
		if err != nil {
			return nil, "", err
		}
		for _, found := range page {
			list = append(list, found.Metadata)
		}
		if o.Limit = cmp.Or(max(o.Limit, 0), 50); next == "" || len(page) >= o.Limit {
			return list, next, nil
		}
		o.Limit, o.After = o.Limit-len(page), next
	}
}

// ChannelPage lists channels in an order. It reads a bounded number of channels: with
// narrow filters a page may be short, and Next continues.
func (h *Hub) ChannelPage(ctx context.Context, o ListOptions) (list []ListedChannel, next string, err error) {
	if o.Limit <= 0 {
		o.Limit = 50
	}
	last := ""
	ended, err := h.eachListed(ctx, o, func(found ListedChannel, selected bool) bool {
		if selected && len(list) == o.Limit {
			return false
		}
		if selected {
			list = append(list, found)
		}
		if len(list) < o.Limit || selected {
			last = found.Place
		}
		return true
	})
	switch {
	case err != nil:
		return nil, "", err
	case ended:
		return list, "", nil
	}
	return list, last, nil
}

// eachListed calls visit with the channels that a list selects from and whether each is
// selected, until visit returns false or maxScanned were read; ended says that there are
// no more.
func (h *Hub) eachListed(ctx context.Context, o ListOptions, visit func(found ListedChannel, selected bool) bool) (ended bool, err error) {
	scanned := 0
	for at, err := range h.listed(ctx, o) {
		if err != nil {
			return false, unavailable(err)
		}
		if scanned++; scanned > maxScanned {
			return false, nil
		}
		m, err := h.Channel(ctx, at.id)
		if fault.CodeOf(err) == fault.NotFound {
			continue
		}
		if err != nil {
			return false, err
		}
		selected, err := h.selected(ctx, m, o)
		if err != nil {
			return false, err
		}
		if !visit(ListedChannel{m, at.place}, selected) {
			return false, nil
		}
	}
	return true, nil
}

// Total is how many entries a list selects in all, whatever the page.
type Total = schema.Total

// HeaderTotal is the header with a Total, for dialects whose lists are bare arrays.
const HeaderTotal = "Parley-Total"

// ChannelTotal counts the channels that the caller may see and that a list selects. Those
// that have not ended are counted by type already; for narrower filters at most
// schema.MaxCounted are counted, of a bounded number that is read.
func (a Access) ChannelTotal(ctx context.Context, o ListOptions) (t Total, err error) {
	if a.by.seesAll() && o.allOpen() {
		open, err := a.hub.openChannels(ctx)
		for key, n := range open {
			if o.Type == "" || o.Type == key.Type {
				t.Count += int(max(n, 0))
			}
		}
		t.Exact = true
		return t, err
	}
	o.by, o.After = a.by, ""
	t.Exact, err = a.hub.eachListed(ctx, o, func(_ ListedChannel, selected bool) bool { return !selected || t.Add() })
	return t, err
}

// allOpen reports whether the channels that have not ended are selected, all of them
// or those of a type.
func (o *ListOptions) allOpen() bool {
	listed := o.Sort == ByActivity || o.Sort == ByAge && o.Open
	narrow := o.Agent != "" || o.Label != nil || o.State != channel.Unset || o.States != nil || o.Text != "" ||
		o.WaitingFor != nil || o.Overdue || o.Invited != "" || o.Dialect != ""
	return listed && !narrow
}

// listPlace is a channel and its place in a list.
type listPlace struct{ id, place string }

// listed yields the channels that a list selects from. The due times of turns are read
// from the board, because the index drops a deadline that has passed.
func (h *Hub) listed(ctx context.Context, o ListOptions) iter.Seq2[listPlace, error] {
	if turns, ok := h.turnsByDue(o); ok {
		return func(yield func(listPlace, error) bool) {
			for at := range turns {
				if !yield(at, nil) {
					return
				}
			}
		}
	}
	return func(yield func(listPlace, error) bool) {
		for entry, err := range h.scanList(ctx, o) {
			var at listPlace
			if err == nil {
				at = o.Sort.place(entry)
			}
			if !yield(at, err) {
				return
			}
		}
	}
}

// scanList reads the part of the index that a list selects from.
func (h *Hub) scanList(ctx context.Context, o ListOptions) iter.Seq2[journal.IndexEntry, error] {
	if o.Sort != ByAge {
		prefix := []byte(schema.IndexActive)
		if o.Sort == ByDue {
			prefix = schema.Key(schema.IndexDue, schema.DueExpectation, "")
		}
		return journal.IndexAll(ctx, h.journal, schema.ListScan(prefix, strings.Replace(o.After, ".", "/", 1), o.Newest))
	}
	_, after := schema.Split(o.After)
	if o.WaitingFor == nil {
		return h.scanOpenAndEnded(ctx, listParts(o), after, o.Newest)
	}
	scans := make([]iter.Seq2[journal.IndexEntry, error], len(o.WaitingFor))
	for i, agent := range o.WaitingFor {
		scans[i] = journal.IndexAll(ctx, h.journal, schema.ListScan(schema.Key(schema.IndexTurn, agent, ""), after, o.Newest))
	}
	return mergeLists(scans, o.Newest)
}

// place is the channel of an index entry, and the entry's place in the list.
func (by ChannelSort) place(entry journal.IndexEntry) listPlace {
	if by == ByAge {
		id := schema.Listed(entry)
		return listPlace{id, id}
	}
	rest, last := entry.Key, schema.LastPart(entry.Key)
	at := schema.LastPart(rest[:len(rest)-len(last)-1])
	if by == ByDue {
		return listPlace{last, at + "." + last}
	}
	return listPlace{schema.Listed(entry), at + "." + last}
}

// ValidPlace reports whether a text can be a place in a list of this order.
func (by ChannelSort) ValidPlace(text string) bool {
	if by == ByAge {
		return channel.ValidID(text)
	}
	at, id, ok := strings.Cut(text, ".")
	return ok && len(at) == 16 && strings.Trim(at, "0123456789abcdef") == "" && (channel.ValidID(id) || envelope.ValidID(id))
}

// listParts is where to look for a list by age.
func listParts(o ListOptions) openAndEnded {
	switch {
	case o.Agent != "":
		parts := channelsOf(o.Agent)
		if o.Open {
			parts.ended = nil
		}
		return parts
	case o.Open:
		return openAndEnded{open: []byte(schema.IndexOpen)}
	case len(o.Label) > 0:
		return openAndEnded{open: schema.Key(schema.IndexLabel, schema.Digest(o.Label[0].Key, o.Label[0].Value), "")}
	}
	return openAndEnded{open: []byte(schema.IndexOpen), ended: []byte(schema.IndexChannel)}
}

// channelsOf is where the channels of an agent are listed.
func channelsOf(agent string) openAndEnded {
	return openAndEnded{open: schema.Key(schema.IndexTurn, agent, ""), ended: schema.Key(schema.IndexMember, agent, "")}
}

func (h *Hub) selected(ctx context.Context, m *channel.Metadata, o ListOptions) (bool, error) {
	if o.Dialect != "" {
		if only := dialectOf(h.adapterOf(m.Manifest.Key())); only != "" && only != o.Dialect {
			return false, nil
		}
	}
	switch {
	case !ofGroup(m, o.Type, o.Label),
		o.State != channel.Unset && m.State != o.State,
		o.States != nil && !slices.Contains(o.States, m.State),
		o.Agent != "" && o.Sort != ByAge && !m.Has(o.Agent),
		o.Text != "" && !h.mentions(m, strings.ToLower(o.Text)),
		o.Invited != "" && (m.State != channel.Pending || !slices.Contains(m.PendingAcks, o.Invited)):
		return false, nil
	}
	if o.Agent != "" && m.MembersOf != "" {
		// The agent is listed because it once spoke there, and may have left since.
		if in, err := h.membersOf(ctx, m); err != nil || !in.Has(o.Agent) {
			return false, err
		}
	}
	if sees, err := h.As(o.by).sees(ctx, m); err != nil || !sees {
		return false, err
	}
	if o.WaitingFor == nil && !o.Overdue {
		return true, nil
	}
	if m.State.Terminal() {
		return false, nil
	}
	turn, err := answer(ctx, h, m.ID, func(ch *loadedChannel) (*Expected, error) { return h.expectedIn(ch), nil })
	if err != nil || turn == nil {
		return false, err
	}
	return (o.WaitingFor == nil || slices.Contains(o.WaitingFor, turn.Agent)) && (!o.Overdue || turn.Overdue), nil
}

// mentions reports whether a channel has a text in lower case in its id at the
// beginning or end, in a label's value, its type, or a participant's name.
func (h *Hub) mentions(m *channel.Metadata, text string) bool {
	_, own := schema.Split(m.ID)
	if strings.HasPrefix(m.ID, text) || strings.HasPrefix(own, text) || strings.HasSuffix(m.ID, text) {
		return true
	}
	has := func(s string) bool { return strings.Contains(strings.ToLower(s), text) }
	for _, value := range m.Labels {
		if has(value) {
			return true
		}
	}
	return has(m.Manifest.Type) || slices.ContainsFunc(m.Participants, func(p channel.Participant) bool { return has(h.Name(p.Agent)) })
}

// Human reports whether an identity is registered as a person.
func (h *Hub) Human(id string) bool { return h.registry.Human(id) }

// People lists the ids of those who are registered as people.
func (h *Hub) People() []string {
	people := []string{}
	for _, m := range h.registry.All() {
		if h.registry.Human(m.ID) {
			people = append(people, m.ID)
		}
	}
	return people
}

// mergeLists merges several lists of channels, each in the same order, into one in
// that order. What is in several of them comes once.
func mergeLists(scans []iter.Seq2[journal.IndexEntry, error], newest bool) iter.Seq2[journal.IndexEntry, error] {
	if len(scans) == 1 {
		return scans[0]
	}
	return func(yield func(journal.IndexEntry, error) bool) {
		type source struct {
			next  func() (journal.IndexEntry, error, bool)
			entry journal.IndexEntry
			at    string
		}
		var sources []*source
		advance := func(s *source) (more bool, err error) {
			s.entry, err, more = s.next()
			s.at = schema.LastPart(s.entry.Key)
			return more, err
		}
		for _, scan := range scans {
			next, stop := iter.Pull2(scan)
			defer stop()
			s := &source{next: next}
			more, err := advance(s)
			if err != nil {
				yield(journal.IndexEntry{}, err)
				return
			}
			if more {
				sources = append(sources, s)
			}
		}
		for last := ""; len(sources) > 0; {
			first := 0
			for i, s := range sources {
				if c := strings.Compare(s.at, sources[first].at); newest && c > 0 || !newest && c < 0 {
					first = i
				}
			}
			s := sources[first]
			if s.at != last && !yield(s.entry, nil) {
				return
			}
			last = s.at
			more, err := advance(s)
			if err != nil {
				yield(journal.IndexEntry{}, err)
				return
			}
			if !more {
				sources = append(sources[:first], sources[first+1:]...)
			}
		}
	}
}

// openAndEnded are the two parts of a list of channels: prefixes of those that have not
// ended and of those that have. Without the second the first is the whole list. Older
// versions kept open channels in both.
type openAndEnded struct{ open, ended []byte }

// scanOpenAndEnded reads both parts as one list by age. A channel moves from the first to
// the second and never back: one that was not open when a piece of the first was read is
// found in the same piece of the second, which is read later.
func (h *Hub) scanOpenAndEnded(ctx context.Context, in openAndEnded, after string, newest bool) iter.Seq2[journal.IndexEntry, error] {
	open := schema.ListScan(in.open, after, newest)
	if in.ended == nil {
		return journal.IndexAll(ctx, h.journal, open)
	}
	return func(yield func(journal.IndexEntry, error) bool) {
		for {
			page, err := journal.ScanAll(ctx, h.journal, open)
			if err != nil {
				yield(journal.IndexEntry{}, err)
				return
			}
			ended := schema.ListScan(in.ended, after, newest)
			if len(page.Entries) > 0 && page.Next != nil {
				after = schema.LastPart(page.Entries[len(page.Entries)-1].Key)
				if end := append(slices.Clone(in.ended), after...); newest {
					ended.From = end
				} else {
					ended.To = append(end, 0)
				}
			}
			if len(page.Entries) > 0 || page.Next == nil {
				parts := []iter.Seq2[journal.IndexEntry, error]{
					func(yield func(journal.IndexEntry, error) bool) {
						for _, entry := range page.Entries {
							if !yield(entry, nil) {
								return
							}
						}
					},
					journal.IndexAll(ctx, h.journal, ended),
				}
				for entry, err := range mergeLists(parts, newest) {
					if !yield(entry, err) || err != nil {
						return
					}
				}
			}
			if open.After = page.Next; page.Next == nil {
				return
			}
		}
	}
}
