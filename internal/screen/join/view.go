package join

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	v1 "github.com/parley-hub/parley/client/v1"
	"github.com/parley-hub/parley/internal/screen"
)

// maxShown is how many requests are shown above the input line.
const maxShown = 3

// View draws the screen.
func (m *Model) View() tea.View {
	v := tea.NewView(strings.Join(m.draw(), "\n"))
	v.AltScreen = true
	v.WindowTitle = "parley join " + screen.Cell(m.me.Passport.Name)
	if m.channel != nil && m.roomy() {
		if v.Cursor = m.input.Cursor(); v.Cursor != nil {
			v.Cursor.Y = m.height - 1
		}
	}
	return v
}

func (m *Model) roomy() bool { return m.width >= 40 && m.height >= 10 }

func (m *Model) draw() []string {
	if !m.roomy() {
		return []string{ansi.Truncate("parley join needs a window of 40×10", m.width, "")}
	}
	lines := m.drawList()
	if m.channel != nil {
		lines = m.drawTalk()
	}
	for i, line := range lines {
		lines[i] = ansi.Truncate(line, m.width, "")
	}
	return lines
}

// entry is something to open.
type entry struct {
	channel string
	cells   []string
}

// entries returns what waits, and then the channels in which nothing waits.
func (m *Model) entries() []entry {
	var list []entry
	known := map[string]bool{}
	add := func(what, channel, when, text string) {
		known[channel] = true
		list = append(list, entry{channel, []string{what, when, screen.Cell(text)}})
	}
	for _, t := range m.waiting.Turns {
		title := t.Title
		if i := slices.IndexFunc(m.rows, func(row v1.Row) bool { return row.ID == t.Channel }); title == "" && i >= 0 {
			title = titleOf(&m.rows[i])
		}
		add("your turn", t.Channel, screen.Ago(m.now, t.Since), cmp.Or(title, t.Type+" "+t.Channel))
	}
	for i := range m.waiting.Requests {
		r := &m.waiting.Requests[i]
		add("request", r.Channel, screen.Due(m.now, r.DueAt), r.Title)
	}
	for i := range m.waiting.Invitations {
		ch := &m.waiting.Invitations[i]
		add("invitation", ch.ID, screen.Ago(m.now, ch.CreatedAt), cmp.Or(ch.Labels["title"], ch.Manifest.Type+" of "+People(ch)))
	}
	for i := range m.rows {
		row := &m.rows[i]
		if known[row.ID] {
			continue
		}
		last := row.CreatedAt
		if row.Last != nil {
			last = row.Last.At
		}
		add(row.State, row.ID, screen.Ago(m.now, last), titleOf(row))
	}
	return list
}

// titleOf returns a channel's title, or what it is and who takes part.
func titleOf(row *v1.Row) string {
	names := make([]string, len(row.Participants))
	for i, p := range row.Participants {
		names[i] = cmp.Or(p.Name, p.ID)
	}
	return cmp.Or(row.Title, row.Type+" of "+strings.Join(names, ", "))
}

var listColumns = []screen.Column{{Title: "WHAT"}, {Title: "WHEN"}, {Title: "TITLE", Kind: screen.Flexible}}

func (m *Model) drawList() []string {
	name := screen.Cell(m.me.Passport.Name)
	waits := len(m.waiting.Turns) + len(m.waiting.Requests) + len(m.waiting.Invitations)
	title := fmt.Sprintf(" %s: %d waiting ", name, waits)
	switch {
	case m.failed != nil:
		title = " " + screen.Cell(m.failed.Error()) + " "
	case !m.away.IsZero():
		title = " " + screen.AwaySince(m.now, m.away) + " "
	case !m.looked || m.opening != "" && m.note == "":
		title = " asking the hub "
	case waits == 0:
		title = fmt.Sprintf(" Nothing waits for %s. ", name)
	}
	lines := []string{screen.Reverse(title)}
	entries := m.entries()
	if len(entries) == 0 && m.looked {
		lines = append(lines, "", "No channel is open. parley channels open begins one.")
	} else if len(entries) > 0 {
		cells := make([][]string, len(entries))
		for i, e := range entries {
			cells[i] = e.cells
		}
		table := screen.Table(m.width, listColumns, cells)
		lines = append(lines, screen.Dim(table[0]))
		room := m.height - 3
		from := max(m.at-room+1, 0)
		for i := from; i < min(from+room, len(entries)); i++ {
			line := table[i+1]
			if i == m.at {
				line = screen.Reverse(line + strings.Repeat(" ", max(m.width-ansi.StringWidth(line), 0)))
			}
			lines = append(lines, line)
		}
	}
	for len(lines) < m.height-1 {
		lines = append(lines, "")
	}
	return append(lines[:m.height-1], cmp.Or(m.note, screen.Dim("↑↓ select  Enter opens  q leaves")))
}

// asked returns the requests that wait for the person, as lines; those of this
// channel first.
func (m *Model) asked() []string {
	var here, elsewhere []string
	for i := range m.waiting.Requests {
		r := &m.waiting.Requests[i]
		line := fmt.Sprintf("request: %s  (%s)", screen.Cell(r.Title), answerWith(r))
		if r.Channel == m.channel.ID {
			here = append(here, line)
		} else {
			elsewhere = append(elsewhere, line)
		}
	}
	list := append(here, elsewhere...)
	if over := len(list) - maxShown; over > 0 {
		list = append(list[:maxShown], fmt.Sprintf("and %d more: /waiting lists them", over))
	}
	return list
}

// room returns how many lines of the channel fit, besides the title, the foot and the
// input.
func (m *Model) room() int { return max(m.height-2-len(m.foot()), 1) }

// maxWrapped is how many lines of the window a line of the foot takes.
const maxWrapped = 3

// foot returns what stands above the input: the requests that wait, and the status. Long
// lines are wrapped, because their ends say what can be done.
func (m *Model) foot() (lines []string) {
	for _, line := range m.asked() {
		lines = append(lines, screen.Bold(line))
	}
	lines = append(lines, m.status())
	if m.height < screen.Height {
		return lines
	}
	var wrapped []string
	for _, line := range lines {
		part := strings.Split(ansi.Wrap(line, m.width, " "), "\n")
		wrapped = append(wrapped, part[:min(len(part), maxWrapped)]...)
	}
	return wrapped
}

// wrapped returns the channel's last lines, wrapped at the window's width: at
// least that many of them, if there are.
func (m *Model) wrapped(atLeast int) []string {
	var parts [][]string
	for n, i := 0, len(m.lines)-1; i >= 0 && n < atLeast; i-- {
		part := strings.Split(ansi.Wrap(m.lines[i], m.width, " "), "\n")
		parts = append(parts, part)
		n += len(part)
	}
	slices.Reverse(parts)
	return slices.Concat(parts...)
}

func (m *Model) drawTalk() []string {
	ch := m.channel
	title := fmt.Sprintf(" %s in %s (%s) with %s ", screen.Cell(m.me.Passport.Name),
		screen.Cell(cmp.Or(ch.Labels["title"], ch.ID)), screen.Cell(ch.Manifest.Type), People(ch))
	lines := []string{screen.Reverse(ansi.Truncate(title, m.width, "…"))}
	room := m.room()
	all := m.wrapped(m.back + room)
	end := max(len(all)-m.back, 0)
	lines = append(lines, all[max(end-room, 0):end]...)
	for len(lines) < room+1 {
		lines = append(lines, "")
	}
	return append(append(lines, m.foot()...), m.input.View())
}

// status returns the line above the input: what matters most now.
func (m *Model) status() string {
	ch := m.channel
	switch {
	case !m.away.IsZero():
		text := screen.AwaySince(m.now, m.away)
		if m.doing != "" {
			text += "; what you said is sent when it is back"
		}
		return screen.Red("-- " + text)
	case m.note != "":
		return screen.Red("-- " + m.note)
	case m.failed != nil:
		return screen.Red("-- the hub refuses: " + screen.Cell(m.failed.Error()))
	case m.ended != "":
		return screen.Bold("-- " + screen.Cell(m.ended) + ": Enter leaves")
	case m.doing != "":
		return screen.Dim("-- sending")
	case m.back > 0:
		return screen.Dim(fmt.Sprintf("-- %d lines below: PgDn", m.back))
	case Invited(ch, m.me):
		return screen.Bold("-- " + screen.Cell(m.me.Passport.Name) + " is invited: /accept or /decline")
	case ch.State == "pending":
		names := make([]string, len(ch.PendingAcks))
		for i, id := range ch.PendingAcks {
			names[i] = screen.Cell(ch.Name(id))
		}
		return screen.Dim("-- waiting for " + strings.Join(names, ", ") + " to accept")
	}
	if turn := Turn(ch, m.me); turn != "" {
		if *ch.Expected == m.me.Passport.ID {
			return screen.Bold("-- " + turn)
		}
		return screen.Dim("-- " + turn)
	}
	return screen.Dim("-- anyone may speak")
}
