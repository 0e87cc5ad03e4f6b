package join

import (
	"time"

	"charm.land/bubbles/v2/textinput"
	tea "charm.land/bubbletea/v2"

	v1 "github.com/parley-hub/parley/client/v1"
	"github.com/parley-hub/parley/internal/screen"
)

// Hub executes what the model needs. Each method returns a command that ends
// with a message of this package.
type Hub interface {
	// Look asks, after a pause, what waits and for the state of the open
	// channel; the number is returned with the answer.
	Look(number int, after time.Duration) tea.Cmd
	// Open finds a channel.
	Open(channel string) tea.Cmd
	// Follow follows the opened channel; an empty Opened leaves the channel.
	Follow(o Opened) tea.Cmd
	// More waits for more lines of the open channel.
	More() tea.Cmd
	// Do executes a line in the open channel.
	Do(line string) tea.Cmd
}

// Messages that a Hub sends.
type (
	// Looked is the state of the hub, or why it is not known.
	Looked struct {
		Number  int
		Waiting *Waiting
		Rows    []v1.Row    // the person's channels, if none is open
		Channel *v1.Channel // the open one
		Err     error
		At      time.Time
	}
	// Opened is the channel that was found, or why it was not.
	Opened struct {
		Channel *v1.Channel
		Err     error
		talk    *Talk
	}
	// Lines are lines of a channel.
	Lines struct {
		Channel string
		Lines   []string
		Ended   string // why no more come; empty: they may
	}
	// Did is the result of a line.
	Did struct {
		Line    string
		Outcome Outcome
		Err     error
	}
)

const (
	maxLines = 2000            // of a channel that are kept
	interval = 1 * time.Second // between two looks
)

// Model is the screen: what waits, or a channel with an input line.
type Model struct {
	hub Hub
	me  *v1.Agent

	width, height int
	now           time.Time
	away          time.Time // since when the hub does not answer; zero: it does
	failed        error     // why the hub refuses to answer
	note          string    // of what was done last
	looks         int
	looked        bool

	waiting Waiting
	rows    []v1.Row
	at      int // the selected entry of the list

	opening string      // the channel that is asked for
	channel *v1.Channel // the open one; nil: the list is shown
	lines   []string
	ended   string
	back    int // lines that are scrolled back
	input   textinput.Model
	doing   string // the line that is being executed
}

// New makes a screen for a person, with a channel open unless it is empty.
func New(hub Hub, me *v1.Agent, channel string) *Model {
	m := &Model{hub: hub, me: me, width: screen.Width, height: screen.Height, opening: channel, input: screen.NewInput("> ")}
	m.input.Focus()
	return m
}

// Init opens the channel, or asks what waits.
func (m *Model) Init() tea.Cmd {
	if m.opening != "" {
		return m.hub.Open(m.opening)
	}
	return m.hub.Look(0, 0)
}

// Update takes a message.
func (m *Model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	var cmd tea.Cmd
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = msg.Width, msg.Height
		m.input.SetWidth(max(m.width-len(m.input.Prompt)-1, 1))
	case Looked:
		cmd = m.sees(msg)
	case Opened:
		cmd = m.opened(msg)
	case Lines:
		cmd = m.reads(msg)
	case Did:
		cmd = m.did(msg)
	case tea.KeyPressMsg:
		cmd = m.key(msg)
	case tea.PasteMsg:
		if m.channel != nil {
			m.input, cmd = m.input.Update(msg)
		}
	}
	return m, cmd
}

// refresh asks for the state at once; answers to earlier questions are ignored.
func (m *Model) refresh() tea.Cmd {
	m.looks++
	return m.hub.Look(m.looks, 0)
}

func (m *Model) sees(msg Looked) tea.Cmd {
	if msg.Number != m.looks {
		return nil
	}
	m.now, m.failed = msg.At, nil
	switch {
	case msg.Err == nil:
		m.away, m.looked = time.Time{}, true
		m.waiting, m.rows = *msg.Waiting, msg.Rows
		if m.channel != nil && msg.Channel != nil && msg.Channel.ID == m.channel.ID {
			m.channel = msg.Channel
		}
		m.at = min(m.at, max(len(m.entries())-1, 0))
	case !screen.Away(msg.Err):
		m.failed = msg.Err
	case m.away.IsZero():
		m.away = msg.At
	}
	return m.hub.Look(m.looks, interval)
}

func (m *Model) opened(msg Opened) tea.Cmd {
	if msg.Err != nil {
		m.note = screen.Cell(msg.Err.Error())
		return m.refresh()
	}
	m.channel, m.lines, m.ended, m.back, m.note = msg.Channel, nil, "", 0, ""
	return tea.Batch(m.hub.Follow(msg), m.refresh())
}

func (m *Model) reads(msg Lines) tea.Cmd {
	if m.channel == nil || m.channel.ID != msg.Channel {
		return nil // of a channel that was closed on the screen
	}
	m.lines = append(m.lines, msg.Lines...)
	if over := len(m.lines) - maxLines; over > 0 {
		m.lines = append([]string(nil), m.lines[over:]...)
	}
	if m.ended = msg.Ended; m.ended != "" {
		return m.refresh()
	}
	return tea.Batch(m.hub.More(), m.refresh())
}

func (m *Model) did(msg Did) tea.Cmd {
	m.doing, m.note = "", ""
	if msg.Err != nil {
		m.note = screen.Cell(msg.Err.Error())
		if m.input.Value() == "" { // so that the person can reword it
			m.input.SetValue(msg.Line)
			m.input.CursorEnd()
		}
		return nil
	}
	m.lines = append(m.lines, msg.Outcome.Notes...)
	if msg.Outcome.Leave {
		return tea.Quit
	}
	return m.refresh()
}

// key handles a key.
func (m *Model) key(k tea.KeyPressMsg) tea.Cmd {
	name := k.String()
	if name == "ctrl+c" || name == "ctrl+d" && m.input.Value() == "" {
		return tea.Quit
	}
	if m.channel == nil {
		return m.listKey(name)
	}
	switch name {
	case "enter":
		return m.enter()
	case "esc":
		m.channel, m.opening, m.at = nil, "", 0
		m.input.Reset()
		return tea.Batch(m.hub.Follow(Opened{}), m.refresh())
	case "pgup":
		m.back = min(m.back+m.room(), max(len(m.wrapped(m.back+2*m.room()))-m.room(), 0))
		return nil
	case "pgdown":
		m.back = max(m.back-m.room(), 0)
		return nil
	}
	m.note = ""
	var cmd tea.Cmd
	m.input, cmd = m.input.Update(k)
	return cmd
}

// enter executes the typed line; one at a time, because the next may build on
// it.
func (m *Model) enter() tea.Cmd {
	line := m.input.Value()
	switch {
	case m.ended != "" && line == "":
		return tea.Quit
	case line == "":
		return nil
	case m.doing != "":
		m.note = "the previous line is not sent yet"
		return nil
	}
	m.input.Reset()
	m.doing, m.back, m.note = line, 0, ""
	return m.hub.Do(line)
}

// listKey moves in the list, and opens what is selected.
func (m *Model) listKey(name string) tea.Cmd {
	entries := m.entries()
	m.note = ""
	switch name {
	case "q", "esc":
		return tea.Quit
	case "up", "k":
		m.at = max(m.at-1, 0)
	case "down", "j":
		m.at = max(min(m.at+1, len(entries)-1), 0)
	case "enter":
		if m.at < len(entries) {
			m.opening = entries[m.at].channel
			return m.hub.Open(m.opening)
		}
	}
	return nil
}

// Err returns why the program should fail: the hub never answered.
func (m *Model) Err() error {
	if !m.looked {
		return m.failed
	}
	return nil
}
