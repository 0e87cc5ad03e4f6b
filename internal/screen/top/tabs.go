package top

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/parley-hub/parley/internal/screen"
)

// maxRows is more than a list ever has.
const maxRows = 1 << 20

const (
	channelsTab = iota
	requestsTab
	agentsTab
	refusalsTab
	tabCount
)

// row is one row of a list: what it shows, and what keys do with it.
type row struct {
	key     string
	cells   []string
	search  []string // texts that the filter looks at, besides the cells
	urgent  bool
	channel string   // to follow
	agent   string   // whose channels to list
	request *Request // to answer
}

// tabs are what the keys 1 to 4 show.
var tabs = [tabCount]struct {
	title   string
	sorts   []string
	columns []screen.Column
	none    string
	rows    func(s *Snapshot, sort string, now time.Time) []row
}{
	{"channels", []string{"rate", "due", "last", "title"}, []screen.Column{
		{Title: "CHANNEL"},
		{Title: "RATE/S"},
		{Title: "TURN", Kind: screen.Flexible},
		{Title: "DUE"},
		{Title: "LAST"},
		{Title: "TYPE", Kind: screen.Flexible},
		{Title: "TITLE", Kind: screen.Flexible},
	}, "No channel is open.", channelRows},
	{"requests", []string{"due", "asked", "kind"}, []screen.Column{
		{Title: "DUE"},
		{Title: "KIND", Kind: screen.Flexible},
		{Title: "ASKED BY", Kind: screen.Flexible},
		{Title: "FOR", Kind: screen.Flexible},
		{Title: "ASKED"},
		{Title: "TITLE", Kind: screen.Flexible},
	}, "No request is open.", requestRows},
	{"agents", []string{"inbox", "turns", "seen", "name"}, []screen.Column{
		{Title: "AGENT", Kind: screen.Flexible},
		{Title: "KIND"},
		{Title: "INBOX"},
		{Title: "TURNS"},
		{Title: "CHANNELS"},
		{Title: "SEEN"},
	}, "Nobody is registered.", agentRows},
	{"refusals", []string{"count", "rate", "code"}, []screen.Column{
		{Title: "CODE", Kind: screen.Flexible},
		{Title: "WHERE"},
		{Title: "COUNT"},
		{Title: "RATE/S"},
	}, "Nothing was refused since the hub was started.", refusalRows},
}

// rows returns the rows of the tab that the filter leaves.
func (m *Model) rows() []row {
	if m.shown == nil {
		return nil
	}
	t := tabs[m.tab]
	all := t.rows(m.shown, t.sorts[m.lists[m.tab].sort], m.now)
	return slices.DeleteFunc(all, func(r row) bool { return !m.matches(r.cells) && !m.matches(r.search) })
}

// first puts the rows with the largest figure first.
func first(a, b *float64) int {
	value := func(f *float64) float64 {
		if f == nil {
			return -1
		}
		return *f
	}
	return cmp.Compare(value(b), value(a))
}

// soonest sorts by what is due; what is never due is last.
func soonest(a, b time.Time) int {
	if a.IsZero() != b.IsZero() {
		if a.IsZero() {
			return 1
		}
		return -1
	}
	return a.Compare(b)
}

func figure(f *float64) string {
	switch {
	case f == nil:
		return "-"
	case *f >= 100 || *f == 0:
		return fmt.Sprintf("%.0f", *f)
	}
	return fmt.Sprintf("%.1f", *f)
}

// shortID returns the beginning of a channel's own id, which other commands
// accept as long as it is unique.
func shortID(id string) string {
	own := id[strings.LastIndexByte(id, '.')+1:]
	return own[:min(len(own), 12)]
}

func channelRows(s *Snapshot, sort string, now time.Time) []row {
	list := slices.Clone(s.Channels)
	slices.SortStableFunc(list, func(a, b Channel) int {
		switch sort {
		case "due":
			return soonest(a.DueAt, b.DueAt)
		case "last":
			return b.LastAt.Compare(a.LastAt)
		case "title":
			return cmp.Compare(a.Title, b.Title)
		}
		return cmp.Or(first(a.Rate, b.Rate), b.LastAt.Compare(a.LastAt))
	})
	rows := make([]row, len(list))
	for i, c := range list {
		due := "-"
		if !c.DueAt.IsZero() {
			due = screen.Due(now, c.DueAt)
		}
		rows[i] = row{key: c.ID, channel: c.ID, urgent: c.Overdue, search: append([]string{c.ID}, c.Who...), cells: []string{
			shortID(c.ID), figure(c.Rate), screen.Cell(cmp.Or(c.Turn, "-")), due, screen.Ago(now, c.LastAt), screen.Cell(c.Type), screen.Cell(c.Title),
		}}
	}
	return rows
}

func requestRows(s *Snapshot, sort string, now time.Time) []row {
	list := slices.Clone(s.Requests)
	slices.SortStableFunc(list, func(a, b Request) int {
		switch sort {
		case "asked":
			return b.AskedAt.Compare(a.AskedAt)
		case "kind":
			return cmp.Compare(a.Kind, b.Kind)
		}
		return cmp.Or(soonest(a.DueAt, b.DueAt), a.AskedAt.Compare(b.AskedAt))
	})
	rows := make([]row, len(list))
	for i := range list {
		r := &list[i]
		rows[i] = row{key: r.ID, channel: r.Channel, request: r, urgent: !r.DueAt.IsZero() && now.After(r.DueAt), search: []string{r.ID}, cells: []string{
			screen.Due(now, r.DueAt), screen.Cell(r.Kind), screen.Cell(r.AskedBy), screen.Cell(cmp.Or(r.For, "anyone")), screen.Ago(now, r.AskedAt), screen.Cell(r.Title),
		}}
	}
	return rows
}

func agentRows(s *Snapshot, sort string, now time.Time) []row {
	list := slices.Clone(s.Agents)
	slices.SortStableFunc(list, func(a, b Agent) int {
		switch sort {
		case "turns":
			return cmp.Compare(b.Turns, a.Turns)
		case "seen":
			return b.SeenAt.Compare(a.SeenAt)
		case "name":
			return cmp.Compare(a.Name, b.Name)
		}
		return cmp.Or(cmp.Compare(b.Inbox, a.Inbox), cmp.Compare(a.Name, b.Name))
	})
	rows := make([]row, len(list))
	for i, a := range list {
		seen := screen.Ago(now, a.SeenAt)
		if a.Online {
			seen = "online"
		}
		rows[i] = row{key: a.ID, agent: a.Name, search: []string{a.ID}, cells: []string{
			screen.Cell(a.Name), a.Kind, strconv.FormatInt(a.Inbox, 10), strconv.Itoa(a.Turns), strconv.Itoa(a.Channels), seen,
		}}
	}
	return rows
}

func refusalRows(s *Snapshot, sort string, _ time.Time) []row {
	list := slices.Clone(s.Refusals)
	slices.SortStableFunc(list, func(a, b Refusal) int {
		switch sort {
		case "rate":
			return first(a.Rate, b.Rate)
		case "code":
			return cmp.Compare(a.Code, b.Code)
		}
		return cmp.Compare(b.Total, a.Total)
	})
	rows := make([]row, len(list))
	for i, r := range list {
		rows[i] = row{key: r.Where + " " + r.Code, cells: []string{screen.Cell(r.Code), r.Where, strconv.FormatInt(r.Total, 10), figure(r.Rate)}}
	}
	return rows
}
