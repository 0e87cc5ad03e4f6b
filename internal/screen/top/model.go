package top

import (
	"time"

	"charm.land/bubbles/v2/textinput"
	tea "charm.land/bubbletea/v2"

	"github.com/parley-hub/parley/internal/screen"
)

// Hub executes what the model needs. Each method returns a command that ends
// with a message of this package.
type Hub interface {
	// Take asks for a snapshot after a pause.
	Take(after time.Duration, before *Snapshot) tea.Cmd
	// Answer answers a request.
	Answer(r Request, choice string) tea.Cmd
	// Tail follows a channel, and ends the one that was followed before. The
	// number is returned with its lines.
	Tail(number int, channel string) tea.Cmd
	// More waits for more lines of what Tail follows.
	More() tea.Cmd
}

// Messages that a Hub sends.
type (
	// Taken is a snapshot, or why there is none.
	Taken struct {
		Snapshot *Snapshot
		Err      error
		At       time.Time
	}
	// Answered is the result of an answer.
	Answered struct {
		Title, Choice string
		Err           error
	}
	// Lines are lines of a channel that is followed.
	Lines struct {
		Number int
		Lines  []string
		Ended  string // why no more come; empty: they may
	}
)

// maxLines bounds what of a followed channel is kept.
const maxLines = 1000

// Model is the screen.
type Model struct {
	hub      Hub
	interval time.Duration

	width, height int
	now           time.Time // of the newest answer, or failure
	shown         *Snapshot // nil: none yet
	away          time.Time // since when the hub does not answer; zero: it does
	failed        error     // why the last snapshot failed, if the hub answers
	note          string    // what the last key did

	tab    int
	lists  [tabCount]list
	filter textinput.Model
	typing bool // into filter

	answer *answering
	tail   *tailing
	tails  int // how many were begun
}

// list is how a tab is sorted and scrolled.
type list struct {
	sort     int
	selected string // key of the row; empty: the first
	offset   int    // of the first line that is shown
}

// answering waits for the key that confirms an answer.
type answering struct {
	request Request
	choice  string
	key     string
}

// tailing is a channel that is followed.
type tailing struct {
	number int
	title  string
	lines  []string
	ended  string
}

// New makes a screen that asks its hub at every interval.
func New(hub Hub, interval time.Duration) *Model {
	return &Model{hub: hub, interval: interval, width: screen.Width, height: screen.Height, filter: screen.NewInput("/")}
}

// Init asks for the first snapshot.
func (m *Model) Init() tea.Cmd { return m.hub.Take(0, nil) }

// Update takes a message.
func (m *Model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = msg.Width, msg.Height
	case Taken:
		return m, m.taken(msg)
	case Answered:
		m.note = screen.Cell(msg.Title) + ": " + msg.Choice
		if msg.Err != nil {
			m.note = "not answered: " + screen.Cell(msg.Err.Error())
		}
		return m, nil
	case Lines:
		return m, m.tailed(msg)
	case tea.KeyPressMsg:
		return m, m.key(msg)
	case tea.PasteMsg:
		return m, m.typed(msg)
	}
	return m, nil
}

// taken takes a snapshot and asks for the next.
func (m *Model) taken(msg Taken) tea.Cmd {
	m.now, m.failed = msg.At, nil
	switch {
	case msg.Err == nil:
		if m.shown != nil && !msg.Snapshot.StartedAt.Equal(m.shown.StartedAt) {
			m.note = "the hub restarted at " + msg.Snapshot.StartedAt.Local().Format("15:04:05")
		}
		m.shown, m.away = msg.Snapshot, time.Time{}
	case !screen.Away(msg.Err):
		m.failed = msg.Err
	case m.away.IsZero():
		m.away = msg.At
	}
	return m.hub.Take(m.interval, m.shown)
}

func (m *Model) tailed(msg Lines) tea.Cmd {
	if m.tail == nil || m.tail.number != msg.Number {
		return nil // of a channel that was left
	}
	m.tail.lines = append(m.tail.lines, msg.Lines...)
	if over := len(m.tail.lines) - maxLines; over > 0 {
		m.tail.lines = append([]string(nil), m.tail.lines[over:]...)
	}
	if m.tail.ended = msg.Ended; msg.Ended != "" {
		return nil
	}
	return m.hub.More()
}

// Err returns why the program should fail: no snapshot was ever taken.
func (m *Model) Err() error {
	if m.shown == nil {
		return m.failed
	}
	return nil
}
