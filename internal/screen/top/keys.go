package top

import (
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/parley-hub/parley/internal/screen"
	"github.com/parley-hub/parley/request"
)

// key handles a key.
func (m *Model) key(k tea.KeyPressMsg) tea.Cmd {
	name := k.String()
	switch {
	case name == "ctrl+c":
		return tea.Quit
	case m.typing:
		return m.typed(k)
	case m.answer != nil:
		return m.confirm(name)
	case m.tail != nil:
		switch name {
		case "esc", "enter", "backspace":
			m.tail = nil
			m.tails++ // lines that still arrive are ignored
			return m.hub.Tail(m.tails, "")
		case "q":
			return tea.Quit
		}
		return nil
	}
	m.note = ""
	l := &m.lists[m.tab]
	switch name {
	case "q":
		return tea.Quit
	case "1", "2", "3", "4":
		m.tab = int(name[0] - '1')
	case "tab", "right":
		m.tab = (m.tab + 1) % tabCount
	case "shift+tab", "left":
		m.tab = (m.tab + tabCount - 1) % tabCount
	case "s":
		l.sort = (l.sort + 1) % len(tabs[m.tab].sorts)
		l.offset = 0
	case "/":
		m.typing = true
		return m.filter.Focus()
	case "esc":
		m.filter.Reset()
	case "up", "k":
		m.move(-1)
	case "down", "j":
		m.move(1)
	case "pgup":
		m.move(-m.page())
	case "pgdown", "space":
		m.move(m.page())
	case "home", "g":
		m.move(-maxRows)
	case "end", "G":
		m.move(maxRows)
	case "enter":
		return m.enter()
	case "a", "d":
		m.ask(name)
	}
	return nil
}

// typed takes what is typed into the filter. Enter keeps it, Esc drops it.
func (m *Model) typed(msg tea.Msg) tea.Cmd {
	if !m.typing {
		return nil
	}
	if k, ok := msg.(tea.KeyPressMsg); ok {
		switch k.String() {
		case "esc":
			m.filter.Reset()
			fallthrough
		case "enter":
			m.typing = false
			m.filter.Blur()
			return nil
		}
	}
	var cmd tea.Cmd
	m.filter, cmd = m.filter.Update(msg)
	m.lists[m.tab].offset = 0
	return cmd
}

// enter follows the channel of the selected row. An agent has several: they are
// listed.
func (m *Model) enter() tea.Cmd {
	row, ok := m.selected()
	switch {
	case !ok:
		return nil
	case row.agent != "":
		m.tab = channelsTab
		m.filter.SetValue(row.agent)
		return nil
	case row.channel == "":
		m.note = "nothing to follow here"
		return nil
	}
	m.tails++
	m.tail = &tailing{number: m.tails, title: row.channel}
	return m.hub.Tail(m.tails, row.channel)
}

// ask begins an answer to the selected request. The same key confirms it,
// because the list may have changed since the person read it.
func (m *Model) ask(key string) {
	row, ok := m.selected()
	if !ok || row.request == nil {
		m.note = "a and d answer a request: 2 lists them"
		return
	}
	decides, word := request.Approves, "approve"
	if key == "d" {
		decides, word = request.Denies, "deny"
	}
	at := slices.IndexFunc(row.request.Choices, decides)
	if at < 0 {
		m.note = "this request has no choice to " + word + "; parley requests answer " + screen.Cell(row.request.ID) + " answers it"
		return
	}
	m.answer = &answering{request: *row.request, choice: row.request.Choices[at], key: key}
}

func (m *Model) confirm(key string) tea.Cmd {
	a := m.answer
	m.answer = nil
	if key != a.key && key != "y" && key != "enter" {
		m.note = "left open"
		return nil
	}
	return m.hub.Answer(a.request, a.choice)
}

// move moves the selection by so many rows.
func (m *Model) move(by int) {
	rows := m.rows()
	if len(rows) == 0 {
		return
	}
	l := &m.lists[m.tab]
	at := min(max(position(rows, l.selected)+by, 0), len(rows)-1)
	l.selected = rows[at].key
	if at < l.offset {
		l.offset = at
	}
	l.offset = max(l.offset, at-m.page()+1)
}

// position returns where a row is now, or the first if it is gone.
func position(rows []row, key string) int {
	return max(slices.IndexFunc(rows, func(r row) bool { return r.key == key }), 0)
}

func (m *Model) selected() (row, bool) {
	rows := m.rows()
	if len(rows) == 0 {
		return row{}, false
	}
	return rows[position(rows, m.lists[m.tab].selected)], true
}

// matches reports whether a row has the filter's text, whatever its case.
func (m *Model) matches(cells []string) bool {
	text := strings.ToLower(m.filter.Value())
	return text == "" || slices.ContainsFunc(cells, func(c string) bool { return strings.Contains(strings.ToLower(c), text) })
}
