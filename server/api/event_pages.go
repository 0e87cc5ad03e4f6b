package api

import (
	"net/http"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub"
	"github.com/parley-hub/parley/journal"
)

type eventPage struct {
	Events []jsontext.Value `json:"events"`
	Next   string           `json:"next"` // the position to continue after
	More   bool             `json:"more"`
}

// channelEventPage is a page of one channel.
type channelEventPage struct {
	eventPage
	Prev    string `json:"prev"`  // the position to go back from; empty at the beginning
	First   string `json:"first"` // of the channel's first event; empty if it has none
	Scanned int    `json:"scanned"`
}

// readChannel answers with a page of a channel's events.
func (a *API) readChannel(c *call, m *channel.Metadata, as string, after journal.Position, limit bounds) error {
	q := hub.EventQuery{As: as, After: after, Limit: limit.entries, Bytes: limit.bytes, Search: int(a.cfg.Limits.Search)}
	if err := a.eventQuery(c, m, &q); err != nil {
		return err
	}
	if err := c.answer.Begin(c.Context(), a.cfg.Limits.Write); err != nil {
		return err
	}
	found, err := a.hub.Events(c.Context(), m.ID, q)
	if err != nil {
		return err
	}
	c.answer.Read(found.Scanned * perEntry)
	for _, e := range found.Events {
		c.answer.Read(len(e.Data))
	}
	page := channelEventPage{Scanned: found.Scanned, eventPage: eventPage{
		Events: []jsontext.Value{}, Next: found.End.String(), More: found.End.Seq < found.Head.Seq,
	}}
	at := found.Head
	for _, e := range found.Events {
		at.Seq = e.Seq
		data, err := appendEvent(nil, e, at.String())
		if err == nil {
			err = c.answer.Hold(int64(len(data)))
		}
		if err != nil {
			return err
		}
		page.Events = append(page.Events, data)
	}
	if found.Begin.Seq > 0 {
		at.Seq = found.Begin.Seq + 1
		page.Prev = at.String()
	}
	if found.Head.Seq > 0 {
		at.Seq = 1
		page.First = at.String()
	}
	return c.write(http.StatusOK, page)
}

// eventQuery reads the parameters other than after.
func (a *API) eventQuery(c *call, m *channel.Metadata, q *hub.EventQuery) error {
	params := c.URL.Query()
	before, around := params.Get("before"), params.Get("around")
	if given := count(before != "", around != "", !q.After.IsZero()); given > 1 {
		return fault.New(fault.Invalid, "after, before and around are places to begin at; give one of them")
	}
	q.Types, q.Match = params["type"], params.Get("match")
	for _, name := range params["sender"] {
		id, err := a.agentNamed(name)
		if err != nil {
			return err
		}
		q.Senders = append(q.Senders, id)
	}
	switch {
	case before != "":
		var err error
		if q.Before, err = journal.ParsePosition(before); err != nil {
			return fault.Wrap(fault.Invalid, err, "%v", err)
		}
		if q.Before.Seq == 0 {
			return fault.New(fault.Invalid, "before=%s is before the first event; send a later one", before)
		}
	case around != "":
		return a.around(c, m, around, q)
	}
	return nil
}

// around begins half a page before an event.
func (a *API) around(c *call, m *channel.Metadata, around string, q *hub.EventQuery) error {
	seq, err := strconv.ParseUint(around, 10, 63)
	if err != nil || envelope.ValidID(around) {
		if seq, err = a.hub.SequenceOf(c.Context(), m.ID, around); err != nil {
			return err
		}
	}
	length, err := a.hub.Length(c.Context(), m.ID)
	if err != nil {
		return err
	}
	if seq < 1 || seq > length {
		return fault.New(fault.Invalid, "around=%.100s is not in the channel: it has the sequences 1 to %d", around, length)
	}
	if half := uint64(q.Limit / 2); seq > half {
		q.From = seq - half
	}
	return nil
}

func count(flags ...bool) (n int) {
	for _, on := range flags {
		if on {
			n++
		}
	}
	return n
}
