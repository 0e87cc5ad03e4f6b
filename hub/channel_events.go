package hub

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub/internal/schema"
	"github.com/parley-hub/parley/journal"
)

// EventQuery selects envelopes of a channel's history. Its zero fields select
// everything.
type EventQuery struct {
	As      string           // only what this agent may see
	After   journal.Position // those after it
	Before  journal.Position // the last ones before it; only one of After and Before is given
	From    uint64           // those from this sequence on, in place of After
	Types   []string         // only of these types
	Senders []string         // only of these
	Match   string           // only with this text, whatever its case
	Limit   int              // 0: 50
	Bytes   int              // how much a page may hold; 0: 4 MiB
	Search  int              // how much is read for one page if it is searched; 0: 8 MiB
}

// EventPage is a part of a history, oldest first.
type EventPage struct {
	Events []*envelope.Envelope
	// Begin and End are the positions before and at the end of the page. Envelopes that
	// were read and not selected are between them too.
	Begin, End journal.Position
	Head       journal.Position // where the history ends
	Scanned    int              // how many were read
}

// Events returns a page of a channel's history.
func (h *Hub) Events(ctx context.Context, channelID string, q EventQuery) (*EventPage, error) {
	// A follower judges positions and viewers.
	start := q.After
	if !q.Before.IsZero() {
		start = q.Before
	}
	f, err := h.Follow(ctx, channelID, FollowOptions{As: q.As, After: start})
	if err != nil {
		return nil, err
	}
	defer f.Close()
	back := !q.Before.IsZero()
	o := journal.ReadOptions{Backward: back, Incarnation: f.head.Incarnation, From: max(q.After.Seq+1, q.From)}
	at := func(seq uint64) journal.Position {
		return journal.Position{Epoch: f.head.Epoch, Incarnation: f.head.Incarnation, Seq: seq}
	}
	page := &EventPage{Head: f.head.Position(), Begin: at(o.From - 1), End: at(o.From - 1)}
	if back {
		page.Begin, page.End = at(q.Before.Seq-1), at(q.Before.Seq-1)
		o.From, o.To = 0, q.Before.Seq-1
	}
	if o.To == 0 && back || !f.head.Exists() || o.From > f.head.Seq {
		return page, nil
	}
	if err := h.gatherEvents(ctx, f, q, o, page, at); err != nil {
		return nil, err
	}
	if back {
		slices.Reverse(page.Events)
	}
	return page, nil
}

// gatherEvents reads until the page is full, or enough was read for it.
func (h *Hub) gatherEvents(ctx context.Context, f *Follower, q EventQuery, o journal.ReadOptions, page *EventPage, at func(uint64) journal.Position) error {
	limit, room, left := orDefault(q.Limit, 50), orDefault(q.Bytes, 4<<20), orDefault(q.Search, 8<<20)
	narrow := q.Match != "" || q.Types != nil || q.Senders != nil || q.As != ""
	match := strings.ToLower(q.Match)
	o.Limits.Entries = min(limit, 256)
	if narrow {
		o.Limits.Entries = 256
	}
	for entry, err := range journal.Records(ctx, h.journal, f.log(), o) {
		if err != nil {
			return unavailable(err)
		}
		if left -= len(entry.Data); narrow && left < 0 && page.Scanned > 0 {
			return nil
		}
		e, err := schema.DecodeEnvelope(entry)
		if err != nil {
			return err
		}
		selected := h.selects(q, match, e)
		if selected {
			if selected, err = f.sees(ctx, e); err != nil {
				return err
			}
		}
		if selected {
			if room -= len(e.Data); room < 0 && len(page.Events) > 0 {
				return nil
			}
			page.Events = append(page.Events, e)
		}
		page.Scanned++
		if o.Backward {
			page.Begin = at(entry.Seq - 1)
		} else {
			page.End = at(entry.Seq)
		}
		if len(page.Events) >= limit {
			return nil
		}
	}
	return nil
}

func orDefault(n, standard int) int {
	if n <= 0 {
		return standard
	}
	return n
}

func (h *Hub) selects(q EventQuery, match string, e *envelope.Envelope) bool {
	return (q.Types == nil || slices.Contains(q.Types, e.Type)) && (q.Senders == nil || slices.Contains(q.Senders, e.Sender)) &&
		(match == "" || h.mentionsIn(e, match))
}

// mentionsIn reports whether an envelope has a text in lower case in its type, its
// sender's name, or any text of its payload.
func (h *Hub) mentionsIn(e *envelope.Envelope, match string) bool {
	if strings.Contains(strings.ToLower(e.Type), match) || strings.Contains(strings.ToLower(h.Name(e.Sender)), match) {
		return true
	}
	dec := jsontext.NewDecoder(bytes.NewReader(e.Data), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	for {
		token, err := dec.ReadToken()
		if err != nil {
			return false // the end: what is stored is valid
		}
		if token.Kind() != '"' {
			continue
		}
		// In an object every other string is a name.
		if kind, n := dec.StackIndex(dec.StackDepth()); kind == '{' && n%2 == 1 {
			continue
		}
		if strings.Contains(strings.ToLower(token.String()), match) {
			return true
		}
	}
}

// SequenceOf finds the sequence of an envelope by its id. Ids grow in a history, so
// this is a search.
func (h *Hub) SequenceOf(ctx context.Context, channelID, envelopeID string) (uint64, error) {
	log := h.tenant.Channel(channelID).History()
	head, err := h.journal.Head(ctx, log)
	if err != nil {
		return 0, unavailable(err)
	}
	low, high := uint64(1), head.Durable.Seq
	for low <= high {
		middle := low + (high-low)/2
		page, err := h.journal.Read(ctx, log, journal.ReadOptions{From: middle, To: middle, Limits: journal.Limits{Entries: 1}})
		if err != nil {
			return 0, unavailable(err)
		}
		if len(page.Entries) == 0 {
			break
		}
		e, err := schema.DecodeEnvelope(page.Entries[0])
		if err != nil {
			return 0, err
		}
		switch c := strings.Compare(e.ID, envelopeID); {
		case c == 0:
			return middle, nil
		case c < 0:
			low = middle + 1
		default:
			high = middle - 1
		}
	}
	return 0, fault.New(fault.NotFound, "channel '%s' has no envelope '%.100s'", channelID, envelopeID)
}

// maxFiredSearch bounds how many audit records of a channel are searched for those of
// expectations.
const maxFiredSearch = 1024

// Fired returns when the expectations of a channel last fired, by name and agent: the key
// is NAME/AGENT, and NAME/ for the channel as a whole.
func (h *Hub) Fired(ctx context.Context, channelID string) (map[string]time.Time, error) {
	found, n := map[string]time.Time{}, 0
	log := h.tenant.Channel(channelID).Audit()
	for entry, err := range journal.Records(ctx, h.journal, log, journal.ReadOptions{Backward: true}) {
		if err != nil {
			return nil, unavailable(err)
		}
		if n++; n > maxFiredSearch {
			break
		}
		var r struct {
			At          string   `json:"at"`
			Kind        string   `json:"kind"`
			Channel     string   `json:"channel_id"`
			Expectation string   `json:"expectation"`
			Violators   []string `json:"violators"`
		}
		if json.Unmarshal(entry.Data, &r) != nil || r.Kind != "expectation_violated" || r.Channel != channelID {
			continue
		}
		at, err := envelope.ParseTime(r.At)
		if err != nil {
			continue
		}
		if len(r.Violators) == 0 {
			r.Violators = []string{""}
		}
		for _, agent := range r.Violators {
			if key := r.Expectation + "/" + agent; found[key].IsZero() {
				found[key] = at
			}
		}
	}
	return found, nil
}
