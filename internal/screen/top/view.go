package top

import (
	"fmt"
	"io"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/parley-hub/parley/internal/screen"
)

// Lines around the list: two of figures, one of tabs, one of titles, one of keys.
const (
	headLines = 3
	footLines = 1
)

// page returns how many rows fit.
func (m *Model) page() int { return max(m.height-headLines-1-footLines, 1) }

// View draws the screen.
func (m *Model) View() tea.View {
	v := tea.NewView(strings.Join(m.draw(), "\n"))
	v.AltScreen = true
	v.WindowTitle = "parley top"
	if m.typing && m.roomy() {
		if v.Cursor = m.filter.Cursor(); v.Cursor != nil {
			v.Cursor.Y = m.height - 1
		}
	}
	return v
}

func (m *Model) roomy() bool { return m.width >= screen.Width && m.height >= screen.Height }

// draw returns the screen's lines, each cut at its width.
func (m *Model) draw() []string {
	if !m.roomy() {
		return []string{
			ansi.Truncate("parley top needs a window of 80×24", m.width, ""),
			ansi.Truncate(fmt.Sprintf("this one is %d×%d; q ends", m.width, m.height), m.width, ""),
		}
	}
	lines := []string{screen.Bold(m.first()), m.second()}
	if m.tail != nil {
		lines = append(lines, m.drawTail()...)
	} else {
		lines = append(lines, m.tabLine())
		lines = append(lines, m.drawList()...)
	}
	for len(lines) < m.height-footLines {
		lines = append(lines, "")
	}
	lines = append(lines[:m.height-footLines], m.foot())
	for i, line := range lines {
		lines[i] = ansi.Truncate(line, m.width, "")
	}
	return lines
}

// first names the hub and its health.
func (m *Model) first() string {
	if m.shown == nil {
		switch {
		case m.failed != nil:
			return "parley top: " + screen.Cell(m.failed.Error())
		case !m.away.IsZero():
			return "parley top: " + screen.AwaySince(m.now, m.away)
		}
		return "parley top: asking the hub"
	}
	line := headline(m.shown, m.now)
	switch {
	case !m.away.IsZero():
		line = fmt.Sprintf("parley %s  %s", screen.Cell(m.shown.Version), screen.Red(screen.AwaySince(m.now, m.away)))
	case m.failed != nil:
		line = screen.Red("the hub refuses: " + screen.Cell(m.failed.Error()))
	}
	return line
}

func headline(s *Snapshot, now time.Time) string {
	connections := "-"
	if s.Connections != nil {
		connections = fmt.Sprintf("%.0f", *s.Connections)
	}
	return fmt.Sprintf("parley %s  up %s  %s connections  %s  %s",
		screen.Cell(s.Version), screen.Span(now.Sub(s.StartedAt)), connections, now.Local().Format("15:04:05"), s.URL)
}

func (m *Model) second() string {
	if m.shown == nil {
		return ""
	}
	return figures(m.shown)
}

func figures(s *Snapshot) string {
	size := func(f *float64) string {
		if f == nil {
			return "-"
		}
		return screen.Size(*f)
	}
	sync := "-"
	if s.SyncP99 != nil {
		sync = fmt.Sprintf("%.1f ms", *s.SyncP99*1000)
	}
	return fmt.Sprintf("admitted %s/s  delivered %s/s  sync p99 %s  disk %s, %s free",
		figure(s.Admitted), figure(s.Delivered), sync, size(s.DataBytes), size(s.DiskFree))
}

func (s *Snapshot) counts() [tabCount]int {
	if s == nil {
		return [tabCount]int{}
	}
	return [tabCount]int{len(s.Channels), len(s.Requests), len(s.Agents), len(s.Refusals)}
}

func (m *Model) tabLine() string {
	var b strings.Builder
	counts := m.shown.counts()
	for i, t := range tabs {
		text := fmt.Sprintf(" %d %s (%d) ", i+1, t.title, counts[i])
		if i == m.tab {
			text = screen.Reverse(text)
		}
		b.WriteString(text)
	}
	return b.String() + "  by " + tabs[m.tab].sorts[m.lists[m.tab].sort]
}

// drawList returns the titles and the rows that fit.
func (m *Model) drawList() []string {
	rows := m.rows()
	if len(rows) == 0 {
		text := tabs[m.tab].none
		switch {
		case m.shown == nil:
			text = ""
		case m.filter.Value() != "":
			text = "Nothing matches " + screen.Cell(m.filter.Value()) + "."
		}
		return []string{"", text}
	}
	lines := tableOf(m.width, m.tab, rows)
	l := m.lists[m.tab]
	at := position(rows, l.selected)
	from := min(l.offset, max(len(rows)-m.page(), 0))
	from = max(min(from, at), at-m.page()+1, 0)
	shown := []string{screen.Dim(lines[0])}
	for i := from; i < min(from+m.page(), len(rows)); i++ {
		line := lines[i+1]
		switch {
		case i == at:
			line = screen.Reverse(line + strings.Repeat(" ", max(m.width-ansi.StringWidth(line), 0)))
		case rows[i].urgent:
			line = screen.Red(line)
		}
		shown = append(shown, line)
	}
	return shown
}

func tableOf(width, tab int, rows []row) []string {
	cells := make([][]string, len(rows))
	for i := range rows {
		cells[i] = rows[i].cells
	}
	return screen.Table(width, tabs[tab].columns, cells)
}

// drawTail returns the newest lines of the channel that is followed.
func (m *Model) drawTail() []string {
	room := m.height - headLines - footLines
	lines := []string{screen.Reverse(" channel " + screen.Cell(m.tail.title) + " ")}
	newest := m.tail.lines[max(len(m.tail.lines)-room, 0):]
	lines = append(lines, newest...)
	if m.tail.ended != "" {
		lines = append(lines[:min(len(lines), room)], screen.Dim("-- "+screen.Cell(m.tail.ended)))
	}
	return lines
}

func (m *Model) foot() string {
	switch {
	case m.typing:
		return m.filter.View()
	case m.answer != nil:
		return screen.Bold(fmt.Sprintf("%s again: %s “%s” of %s; any other key leaves it open",
			m.answer.key, screen.Cell(m.answer.choice), screen.Cell(m.answer.request.Title), screen.Cell(m.answer.request.AskedBy)))
	case m.tail != nil:
		return screen.Dim("Esc back  q quit")
	case m.note != "":
		return m.note
	}
	keys := "1-4 tabs  s sort  / filter  ↑↓ select  Enter follow  a approve  d deny  q quit"
	if m.filter.Value() != "" {
		keys = "filter " + screen.Cell(m.filter.Value()) + " (Esc drops it)  " + keys
	}
	return screen.Dim(keys)
}

// Write writes a snapshot as text: the figures, and every list.
func Write(w io.Writer, s *Snapshot, width int) error {
	lines := []string{ansi.Truncate(headline(s, s.At), width, "…"), figures(s)}
	for tab, t := range tabs {
		lines = append(lines, "", fmt.Sprintf("%s (%d), by %s", t.title, s.counts()[tab], t.sorts[0]))
		if rows := t.rows(s, t.sorts[0], s.At); len(rows) > 0 {
			lines = append(lines, tableOf(width, tab, rows)...)
		} else {
			lines = append(lines, t.none)
		}
	}
	_, err := fmt.Fprintln(w, strings.Join(lines, "\n"))
	return err
}
