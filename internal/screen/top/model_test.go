package top_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/internal/screen/screentest"
	"github.com/parley-hub/parley/internal/screen/top"
)

var noon = time.Date(2026, 3, 9, 12, 0, 0, 0, time.Local)

// recorded notes what the model has done, and does nothing.
type recorded struct {
	takes   int
	before  *top.Snapshot
	answers []string
	tails   []string
	number  int // of the newest tail
}

func (r *recorded) Take(_ time.Duration, before *top.Snapshot) tea.Cmd {
	r.takes++
	r.before = before
	return nil
}

func (r *recorded) Answer(q top.Request, choice string) tea.Cmd {
	r.answers = append(r.answers, q.ID+" "+choice+" "+q.Digest)
	return nil
}

func (r *recorded) Tail(number int, channel string) tea.Cmd {
	r.number = number
	r.tails = append(r.tails, channel)
	return nil
}

func (r *recorded) More() tea.Cmd { return nil }

// stage is a model with its hub.
type stage struct {
	screentest.Screen
	hub *recorded
}

func newStage(t *testing.T) *stage {
	t.Helper()
	hub := &recorded{}
	s := &stage{screentest.Screen{T: t, Model: top.New(hub, time.Second)}, hub}
	s.Model.Init()
	return s
}

// press presses keys, each named as bubbletea names them or one character.
func (s *stage) press(keys ...string) {
	special := map[string]rune{"enter": tea.KeyEnter, "esc": tea.KeyEscape, "down": tea.KeyDown, "up": tea.KeyUp, "tab": tea.KeyTab, "end": tea.KeyEnd, "backspace": tea.KeyBackspace}
	for _, key := range keys {
		if code, ok := special[key]; ok {
			s.Send(tea.KeyPressMsg{Code: code})
			continue
		}
		s.Type(key)
	}
}

// order checks that texts are shown one below the other.
func (s *stage) order(texts ...string) {
	s.T.Helper()
	at := 0
	for _, text := range texts {
		next := strings.Index(s.Text()[at:], text)
		if next < 0 {
			s.T.Fatalf("%q is not below the others of %q:\n%s", text, texts, s.Text())
		}
		at += next
	}
}

func snapshot() *top.Snapshot {
	return &top.Snapshot{
		At: noon, URL: "http://127.0.0.1:7440", Version: "v1.2.3", StartedAt: noon.Add(-3 * time.Hour),
		Admitted: new(12.5), Delivered: new(float64(250)), SyncP99: new(0.0123), DataBytes: new(float64(5 << 20)), DiskFree: new(float64(10 << 30)), Connections: new(float64(7)),
		Channels: []top.Channel{
			{ID: "0190aaaaaaaaaaaa0000000000000001", Title: "slow talk", Type: "conversation", Rate: new(0.5), Turn: "alice", DueAt: noon.Add(time.Minute), LastAt: noon.Add(-time.Minute), Who: []string{"alice", "bob"}},
			{ID: "0190aaaaaaaaaaaa0000000000000002", Title: "fast talk", Type: "workflow", Rate: new(float64(40)), Turn: "carol", DueAt: noon.Add(-time.Minute), Overdue: true, LastAt: noon.Add(-time.Second), Who: []string{"carol"}},
			{ID: "0190bbbbbbbbbbbb0000000000000003", Title: "evil\x1b[2J\nname", Type: "discussion", LastAt: noon.Add(-time.Hour)},
		},
		Requests: []top.Request{
			{ID: "r1", Kind: "approval", Channel: "0190aaaaaaaaaaaa0000000000000001", AskedBy: "alice", For: "hana", Title: "Later", AskedAt: noon.Add(-time.Minute), Choices: []string{"approve", "deny"}, Digest: "d1"},
			{ID: "r2", Kind: "permission", AskedBy: "bob", Title: "Now", AskedAt: noon.Add(-time.Hour), DueAt: noon.Add(30 * time.Second), Choices: []string{"deny_once", "approve_once"}},
			{ID: "r3", Kind: "clarification", AskedBy: "carol", Title: "Which?", AskedAt: noon, DueAt: noon.Add(time.Hour)},
		},
		Agents: []top.Agent{
			{ID: "a1", Name: "alice", Kind: "agent", Inbox: 2, Online: true},
			{ID: "a2", Name: "bob", Kind: "human", Inbox: 9, Turns: 1, SeenAt: noon.Add(-2 * time.Hour)},
		},
		Refusals: []top.Refusal{{Where: "door", Code: "connections", Total: 3, Rate: new(float64(2))}, {Where: "posts", Code: "rate_limited", Total: 30, Rate: new(float64(0))}},
	}
}

func taken(s *top.Snapshot) top.Taken { return top.Taken{Snapshot: s, At: s.At} }

func TestTheHeadTellsHowTheHubIs(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.Shows("asking the hub")
	s.Send(taken(snapshot()))
	s.Shows("parley v1.2.3", "up 3h", "http://127.0.0.1:7440", "12:00:00",
		"admitted 12.5/s", "delivered 250/s", "sync p99 12.3 ms", "disk 5.0 MiB, 10.0 GiB free", "7 connections")
	if s.hub.takes != 2 || s.hub.before == nil {
		t.Errorf("%d snapshots were asked for, the last after %v", s.hub.takes, s.hub.before)
	}
}

func TestFourTabsAreSortedAndSortedAnew(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.Send(taken(snapshot()))
	s.order("1 channels (3)", "by rate", "fast talk", "slow talk")
	s.Shows("carol", "overdue 1m", "in 1m")
	s.press("s")
	s.order("by due", "fast talk", "slow talk", "evil")
	s.press("s", "s")
	s.order("by title", "evil", "fast talk", "slow talk")
	s.press("2")
	s.order("by due", "Now", "Which?", "Later")
	s.Shows("anyone", "hana")
	s.press("3")
	s.order("by inbox", "bob", "2h ago", "alice", "online")
	s.press("s", "s", "s")
	s.order("by name", "alice", "bob")
	s.press("4")
	s.order("by count", "rate_limited", "connections")
	s.press("s")
	s.order("by rate", "connections", "rate_limited")
	s.press("1")
	s.Shows("by title") // each tab keeps its own order
}

func TestNoNameMovesTheCursor(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.Send(taken(snapshot()))
	s.Shows(`evil\x1b[2J\nname`)
	if content := s.Model.View().Content; strings.Contains(content, "\x1b[2J") {
		t.Errorf("%q", content)
	}
	var out strings.Builder
	if err := top.Write(&out, snapshot(), 80); err != nil || strings.Contains(out.String(), "\x1b") {
		t.Errorf("%v: %q", err, out.String())
	}
}

func TestEveryLineFitsEveryWindow(t *testing.T) {
	t.Parallel()
	wide := snapshot()
	for i := range 60 {
		wide.Channels = append(wide.Channels, top.Channel{ID: fmt.Sprintf("0190cccc%024d", i), Title: strings.Repeat("名前", 50), Turn: strings.Repeat("x", 90), Type: "workflow", LastAt: noon})
	}
	for _, size := range []tea.WindowSizeMsg{{Width: 80, Height: 24}, {Width: 81, Height: 25}, {Width: 200, Height: 60}, {Width: 79, Height: 24}, {Width: 80, Height: 23}, {Width: 3, Height: 1}} {
		s := newStage(t)
		s.Send(size, taken(wide))
		lines := strings.Split(s.Text(), "\n")
		small := size.Width < 80 || size.Height < 24
		if !small && len(lines) != size.Height {
			t.Errorf("%dx%d: %d lines", size.Width, size.Height, len(lines))
		}
		if small && size.Width > 40 {
			s.Shows("parley top needs a window of 80×24")
		}
		for _, line := range lines {
			if ansi.StringWidth(line) > size.Width {
				t.Errorf("%dx%d: %d columns: %s", size.Width, size.Height, ansi.StringWidth(line), line)
			}
		}
	}
}

func TestTheFilterLeavesWhatHasItsText(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.Send(taken(snapshot()))
	s.press("/", "FAST")
	s.Shows("/FAST", "fast talk")
	s.Hides("slow talk")
	s.press("q") // is typed
	s.Shows("Nothing matches FASTq.")
	s.press("backspace", "enter")
	s.Shows("fast talk", "filter FAST")
	s.press("esc")
	s.Shows("slow talk")
	s.press("/", "bbbb", "enter") // also by id
	s.Shows("evil")
	s.Hides("fast talk")
	s.press("/", "esc")
	s.Shows("fast talk")
}

func TestEnterFollowsAChannel(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.Send(taken(snapshot()))
	s.press("down", "enter") // the second by rate
	if fmt.Sprint(s.hub.tails) != "[0190aaaaaaaaaaaa0000000000000001]" {
		t.Fatalf("%v", s.hub.tails)
	}
	s.Send(top.Lines{Number: s.hub.number, Lines: []string{"12:00:00    1  alice: hello"}})
	s.Shows("channel 0190aaaaaaaaaaaa0000000000000001", "alice: hello", "Esc back")
	s.Send(top.Lines{Number: s.hub.number - 1, Lines: []string{"of another"}})
	s.Hides("of another")
	for i := range 2000 {
		s.Send(top.Lines{Number: s.hub.number, Lines: []string{fmt.Sprintf("line %d.", i)}})
	}
	s.Shows("line 1999.")
	s.Hides("line 1000.")
	s.Send(top.Lines{Number: s.hub.number, Ended: "the channel has ended"})
	s.Shows("-- the channel has ended")
	s.press("esc")
	s.Shows("slow talk")
	// An agent's channels are listed.
	s.press("3", "enter")
	s.Shows("slow talk", "filter bob")
	s.Hides("fast talk")
	s.press("4", "esc", "enter")
	s.Shows("nothing to follow here")
}

func TestRequestsAreAnsweredByTheSameKeyTwice(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.Send(taken(snapshot()))
	s.press("a")
	s.Shows("2 lists them")
	s.press("2", "a")
	s.Shows("a again: approve_once “Now” of bob")
	if len(s.hub.answers) != 0 {
		t.Fatalf("answered at once: %v", s.hub.answers)
	}
	s.press("d") // another key leaves it open
	s.Shows("left open")
	s.press("d", "d", "end", "a", "a")
	if got := fmt.Sprint(s.hub.answers); got != "[r2 deny_once  r1 approve d1]" {
		t.Errorf("%s", got)
	}
	s.Send(top.Answered{Title: "Later", Choice: "approve"})
	s.Shows("Later: approve")
	s.Send(top.Answered{Title: "Later", Err: fault.New(fault.Conflict, "it was answered by bob")})
	s.Shows("not answered: it was answered by bob")
	s.press("up", "a")
	s.Shows("no choice to approve; parley requests answer r3")
}

// The selection stays with its row, wherever the row goes.
func TestTheSelectionStaysWithItsRow(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.Send(taken(snapshot()))
	s.press("down")
	next := snapshot()
	next.Channels[0].Rate = new(float64(1000))
	s.Send(taken(next))
	s.press("enter")
	if fmt.Sprint(s.hub.tails) != "[0190aaaaaaaaaaaa0000000000000001]" {
		t.Errorf("%v", s.hub.tails)
	}
}

func TestAHubThatIsAwayIsWaitedFor(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.Send(taken(snapshot()))
	gone := errors.New("connection refused")
	s.Send(top.Taken{Err: gone, At: noon.Add(time.Second)}, top.Taken{Err: gone, At: noon.Add(66 * time.Second)})
	s.Shows("the hub is away since 12:00:01 (1m)", "fast talk")
	if s.hub.takes != 4 {
		t.Errorf("%d snapshots were asked for", s.hub.takes)
	}
	back := snapshot()
	back.At, back.StartedAt = noon.Add(70*time.Second), noon.Add(69*time.Second)
	s.Send(taken(back))
	s.Hides("away")
	s.Shows("up 1s", "the hub restarted at 12:01:09")
	s.Send(top.Taken{Err: fault.New(fault.AuthFailed, "the key was revoked"), At: noon.Add(71 * time.Second)})
	s.Shows("the hub refuses: the key was revoked")
}

func TestKeysQuit(t *testing.T) {
	t.Parallel()
	for _, key := range []tea.KeyPressMsg{{Code: 'q', Text: "q"}, {Code: 'c', Mod: tea.ModCtrl}} {
		s := newStage(t)
		_, cmd := s.Model.Update(key)
		if cmd == nil {
			t.Fatalf("%s does nothing", key)
		}
		if _, ok := cmd().(tea.QuitMsg); !ok {
			t.Errorf("%s does not quit", key)
		}
	}
}
