// Package marks folds what the side log of a channel records besides envelopes.
// Marks are folded record by record, and saved with the channel's fold.
package marks

import (
	"slices"

	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub/internal/expect"
	"github.com/parley-hub/parley/hub/internal/schema"
	"github.com/parley-hub/parley/request"
)

// Marks is the fold of a channel's side log.
type Marks struct {
	Fired   []string // keys of expectations
	Hidden  []string // participants
	Removed []string // participants
	Back    []string // participants that were hidden, until what they missed is replayed to them
	Tasks   []string // the channel's tasks that have not ended
	Due     []Deadline
	// Listed are the agents who have the channel in their lists, sorted, if the
	// members are not the participants of the creation.
	Listed []string
	Open   []OpenRequest
	Asked  []expect.Asked // the open requests, and the last ones that ended
}

// Hides reports whether a participant is hidden.
func (m *Marks) Hides(agent string) bool { return slices.Contains(m.Hidden, agent) }

// Bars reports whether a participant was removed.
func (m *Marks) Bars(agent string) bool { return slices.Contains(m.Removed, agent) }

// After returns the marks after one more record.
func (m Marks) After(r schema.SideRecord) Marks {
	switch r.Kind {
	case schema.SideFired:
		m.Fired = append(slices.Clip(m.Fired), r.Fired...)
	case schema.SideHidden:
		m.Hidden = append(slices.Clip(m.Hidden), r.Agent)
	case schema.SideUnhidden:
		m.Hidden = without(m.Hidden, r.Agent)
		m.Back = append(slices.Clip(m.Back), r.Agent)
	case schema.SideRemoved:
		m.Removed = append(slices.Clip(m.Removed), r.Agent)
	case schema.SideTask:
		m.Tasks = append(slices.Clip(m.Tasks), r.Task)
	case schema.SideTaskEnded:
		m.Tasks = without(m.Tasks, r.Task)
	case schema.SideDeadline:
		m.Due = deadlinesAfter(m.Due, r)
	case schema.SideListed:
		m.Listed = sortedWith(m.Listed, r.Agents)
	case schema.SideUnlisted:
		m.Listed = sortedWithout(m.Listed, r.Agents)
	case schema.SideRequest:
		if asked, err := ReadRequest(r); err == nil {
			m.Open = append(slices.Clip(m.Open), OpenRequest{asked, r.Asked})
			m.Asked = append(slices.Clip(m.Asked), expect.Asked{Request: r.Name, By: asked.AskedBy, From: expect.InstantOf(asked.AskedAt)})
		}
	case schema.SideRequestEnded:
		m.Open = slices.DeleteFunc(slices.Clone(m.Open), func(q OpenRequest) bool { return q.ID == r.Name })
		m.Asked = answeredAt(m.Asked, r)
	case schema.SideEnded:
		m.Fired, m.Tasks, m.Due, m.Asked = nil, nil, nil, nil
	}
	return m
}

// None reports whether nothing is marked.
func (m Marks) None() bool {
	return len(m.Fired)+len(m.Hidden)+len(m.Removed)+len(m.Back)+len(m.Tasks)+len(m.Due)+len(m.Listed)+len(m.Open)+len(m.Asked) == 0
}

// maxAnswered bounds the ended requests whose times a channel keeps. Only those of
// one turn matter.
const maxAnswered = 64

// answeredAt records when a request ended.
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

// Muted lists the participants that get no live deliveries.
func (m Marks) Muted() []string { return slices.Concat(m.Hidden, m.Back) }

// Deadline is a reminder that an adapter asked for.
type Deadline struct {
	Name string
	At   expect.Instant
}

func deadlinesAfter(list []Deadline, r schema.SideRecord) []Deadline {
	next := slices.DeleteFunc(slices.Clone(list), func(d Deadline) bool { return d.Name == r.Name })
	if r.Due != 0 {
		next = append(next, Deadline{r.Name, expect.Instant(r.Due)})
	}
	return next
}

// Key returns the index key of the deadline.
func (d Deadline) Key(channelID string) []byte {
	return schema.DeadlineKey(d.At.Time(), d.Name, channelID)
}

// OpenRequest is a request of a channel that has not ended.
type OpenRequest struct {
	*request.Request
	Asked uint64 // the sequence of its record in the side log
}

// ReadRequest reads the request that a side record asks.
func ReadRequest(r schema.SideRecord) (*request.Request, error) {
	e, err := envelope.Unmarshal(r.Envelope)
	if err != nil {
		return nil, fault.Wrap(fault.Internal, err, "%v", err)
	}
	asked, err := request.Decode(e.Data)
	if err != nil {
		return nil, fault.Wrap(fault.Internal, err, "request '%s' cannot be read: %v", r.Name, err)
	}
	return asked, nil
}

func sortedWith(list, more []string) []string {
	list = append(slices.Clip(list), more...)
	slices.Sort(list)
	return slices.Compact(list)
}

func sortedWithout(list, gone []string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(s string) bool { return slices.Contains(gone, s) })
}

func without(list []string, gone string) []string { return sortedWithout(list, []string{gone}) }
