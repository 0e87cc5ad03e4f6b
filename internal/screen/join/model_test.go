package join_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	v1 "github.com/parley-hub/parley/client/v1"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/internal/screen/join"
	"github.com/parley-hub/parley/internal/screen/screentest"
	"github.com/parley-hub/parley/request"
)

var noon = time.Date(2026, 3, 9, 12, 0, 0, 0, time.Local)

// recorded notes what the model has done, and does nothing.
type recorded struct {
	look   int // number of the newest look
	opened []string
	lines  []string
	left   int
}

func (r *recorded) Look(number int, _ time.Duration) tea.Cmd { r.look = number; return nil }
func (r *recorded) Open(channel string) tea.Cmd              { r.opened = append(r.opened, channel); return nil }
func (r *recorded) More() tea.Cmd                            { return nil }
func (r *recorded) Do(line string) tea.Cmd                   { r.lines = append(r.lines, line); return nil }

func (r *recorded) Follow(o join.Opened) tea.Cmd {
	if o.Channel == nil {
		r.left++
	}
	return nil
}

type stage struct {
	screentest.Screen
	hub *recorded
}

func hana() *v1.Agent {
	me := &v1.Agent{}
	me.Passport.ID, me.Passport.Name = "h", "hana"
	return me
}

func talk() *v1.Channel {
	ch := &v1.Channel{ID: "0190aaaa", State: "active", Labels: map[string]string{"title": "har\x1bbour"}, Names: map[string]string{"h": "hana", "p": "parrot"}}
	ch.Manifest.Type = "conversation"
	ch.Participants = []v1.Participant{{Agent: "h"}, {Agent: "p"}}
	return ch
}

func newStage(t *testing.T, channel string) *stage {
	t.Helper()
	hub := &recorded{}
	s := &stage{screentest.Screen{T: t, Model: join.New(hub, hana(), channel)}, hub}
	s.Model.Init()
	s.Send(tea.WindowSizeMsg{Width: 80, Height: 24})
	return s
}

// inTalk returns a stage with a channel open.
func inTalk(t *testing.T) *stage {
	t.Helper()
	s := newStage(t, "0190aaaa")
	s.Send(join.Opened{Channel: talk()})
	s.looks(talk(), join.Waiting{})
	return s
}

// looks sends the model the state of the hub.
func (s *stage) looks(ch *v1.Channel, waits join.Waiting) {
	s.Send(join.Looked{Number: s.hub.look, Waiting: &waits, Channel: ch, At: noon})
}

func (s *stage) press(code rune) { s.Send(tea.KeyPressMsg{Code: code}) }

func (s *stage) quits() bool {
	if s.Cmd == nil {
		return false
	}
	_, quit := s.Cmd().(tea.QuitMsg)
	return quit
}

func TestAChannelHasAnInputLineAndTellsWhoseTurnItIs(t *testing.T) {
	t.Parallel()
	s := inTalk(t)
	s.Send(join.Lines{Channel: "0190aaaa", Lines: []string{"12:00:00    4  parrot: ahoy"}})
	s.Shows(`hana in har\x1bbour (conversation) with hana, parrot`, "parrot: ahoy", "anyone may speak")
	if strings.Contains(s.Model.View().Content, "har\x1bbour") {
		t.Error("a title moves the cursor")
	}
	turn := talk()
	turn.Expected = new("p")
	s.looks(turn, join.Waiting{})
	s.Shows("it is the turn of parrot")
	turn.Expected = new("h")
	s.looks(turn, join.Waiting{})
	s.Shows("it is your turn, hana")

	s.Type("q is said")
	s.Shows("> q is said")
	s.press(tea.KeyEnter)
	s.Shows("sending")
	s.Type("next")
	s.press(tea.KeyEnter)
	s.Shows("the previous line is not sent yet", "> next")
	s.Send(join.Did{Line: "q is said", Outcome: join.Outcome{Said: true}})
	s.press(tea.KeyEnter)
	if got := fmt.Sprint(s.hub.lines); got != "[q is said next]" {
		t.Errorf("%s was done", got)
	}
	s.Send(join.Lines{Channel: "another", Lines: []string{"of another"}})
	s.Hides("of another")
}

func TestARefusedLineCanBeSaidOtherwise(t *testing.T) {
	t.Parallel()
	s := inTalk(t)
	s.Type("too early")
	s.press(tea.KeyEnter)
	s.Send(join.Did{Line: "too early", Err: fault.New(fault.Protocol, "it is the turn of 'parrot'")})
	s.Shows("it is the turn of 'parrot'", "> too early")
	s.Type("!")
	s.Shows("anyone may speak", "> too early!")
}

// The end of a refusal, and how a request is answered, are shown whatever their length.
func TestLongLinesAboveTheInputAreWrapped(t *testing.T) {
	t.Parallel()
	s := inTalk(t)
	s.Type("ahoy")
	s.press(tea.KeyEnter)
	s.Send(join.Did{Line: "ahoy", Err: fault.New(fault.Protocol, "conversation expects the first send from its initiator 'parrot', not from 'hana'; it is the turn of parrot")})
	s.Shows("turn of parrot", "> ahoy")
	asked := v1.Request{
		ID: "0190cccccccccccccccccccccccccccc", Channel: "0190aaaa", State: request.Open, Choices: []request.Choice{{ID: "approve"}, {ID: "deny"}},
		Title: "May the replica of the order store be promoted while the backup of today is still being copied?",
	}
	s.looks(talk(), join.Waiting{Requests: []v1.Request{asked}})
	s.Shows("approve|deny")
}

func TestInvitationsAndRequestsAreShownAboveTheInput(t *testing.T) {
	t.Parallel()
	s := inTalk(t)
	pending := talk()
	pending.State, pending.PendingAcks = "pending", []string{"h"}
	s.looks(pending, join.Waiting{})
	s.Shows("hana is invited: /accept or /decline")
	pending.PendingAcks = []string{"p"}
	s.looks(pending, join.Waiting{})
	s.Shows("waiting for parrot to accept")
	var waits join.Waiting
	for i := range 5 {
		waits.Requests = append(waits.Requests, v1.Request{ID: fmt.Sprintf("r%d", i), Channel: "elsewhere", Title: fmt.Sprintf("Question %d?", i)})
	}
	waits.Requests[4].Channel, waits.Requests[4].Choices = "0190aaaa", []request.Choice{{ID: "approve"}, {ID: "deny"}}
	s.looks(talk(), waits)
	s.Shows("Question 4?  (/answer r4 approve|deny)", "Question 0?", "Question 1?", "and 2 more: /waiting lists them")
	s.Hides("Question 3?")
	s.Type("/waiting")
	s.press(tea.KeyEnter)
	s.Send(join.Did{Outcome: join.Outcome{Notes: []string{"Nothing waits for hana."}}})
	s.Shows("Nothing waits for hana.")
}

func TestAHubThatIsAwayIsWaitedFor(t *testing.T) {
	t.Parallel()
	s := inTalk(t)
	gone := errors.New("connection refused")
	s.Send(join.Looked{Number: s.hub.look, Err: gone, At: noon.Add(time.Second)})
	s.Send(join.Looked{Number: s.hub.look, Err: gone, At: noon.Add(20 * time.Second)})
	s.Shows("the hub is away since 12:00:01 (19s)")
	s.Type("later")
	s.press(tea.KeyEnter)
	s.Shows("what you said is sent when it is back")
	s.Send(join.Looked{Number: s.hub.look - 1, Waiting: &join.Waiting{}, At: noon}) // asked before
	s.Shows("away since")
	s.looks(talk(), join.Waiting{})
	s.Hides("away since")
	s.Send(join.Looked{Number: s.hub.look, Err: fault.New(fault.AuthFailed, "the key was revoked"), At: noon})
	s.Shows("the hub refuses: the key was revoked")
}

func TestLeaving(t *testing.T) {
	t.Parallel()
	for name, leave := range map[string]func(*stage){
		"ctrl+c": func(s *stage) { s.Send(tea.KeyPressMsg{Code: 'c', Mod: tea.ModCtrl}) },
		"ctrl+d": func(s *stage) { s.Send(tea.KeyPressMsg{Code: 'd', Mod: tea.ModCtrl}) },
		"/leave": func(s *stage) { s.Send(join.Did{Line: "/leave", Outcome: join.Outcome{Leave: true}}) },
		"its end": func(s *stage) {
			s.Send(join.Lines{Channel: "0190aaaa", Ended: "the channel has ended"})
			s.Shows("the channel has ended: Enter leaves")
			s.press(tea.KeyEnter)
		},
	} {
		s := inTalk(t)
		if leave(s); !s.quits() {
			t.Errorf("%s does not leave", name)
		}
	}
	s := inTalk(t)
	s.Type("half a line")
	if s.Send(tea.KeyPressMsg{Code: 'd', Mod: tea.ModCtrl}); s.quits() {
		t.Error("ctrl+d leaves with something typed")
	}
}

func TestTheListLeadsToChannelsAndBack(t *testing.T) {
	t.Parallel()
	s := newStage(t, "")
	s.Shows("asking the hub")
	waits := join.Waiting{
		Turns:       []v1.Turn{{Channel: "c1", Title: "harbour", Since: noon.Add(-time.Minute)}},
		Requests:    []v1.Request{{ID: "r1", Channel: "c2", Title: "Sail?"}},
		Invitations: []v1.Channel{{ID: "c3", CreatedAt: noon.Add(-time.Hour), Participants: []v1.Participant{{Agent: "p"}}, Names: map[string]string{"p": "par\x1brot"}}},
	}
	rows := []v1.Row{{ID: "c1", Title: "harbour"}, {ID: "c4", Title: "quiet", State: "active", CreatedAt: noon.Add(-2 * time.Hour)}}
	s.Send(join.Looked{Number: s.hub.look, Waiting: &waits, Rows: rows, At: noon})
	s.Shows("hana: 3 waiting", "your turn", "1m ago", "harbour", "request", "Sail?", "invitation", `par\x1brot`, "quiet", "2h ago")
	s.press(tea.KeyDown)
	s.press(tea.KeyEnter)
	s.Send(join.Opened{Err: fault.New(fault.AccessDenied, "hana is not in this channel")})
	s.Shows("hana is not in this channel")
	s.press(tea.KeyDown)
	s.press(tea.KeyDown)
	s.press(tea.KeyDown) // no further than the last
	s.press(tea.KeyEnter)
	if got := fmt.Sprint(s.hub.opened); got != "[c2 c4]" {
		t.Fatalf("%s were opened", got)
	}
	s.Send(join.Opened{Channel: talk()})
	s.Shows("hana in har")
	s.press(tea.KeyEscape)
	s.Shows("3 waiting")
	if s.hub.left != 1 {
		t.Errorf("left %d times", s.hub.left)
	}
	s.Send(join.Looked{Number: s.hub.look, Waiting: &join.Waiting{}, At: noon})
	s.Shows("Nothing waits for hana.", "No channel is open")
	if s.Type("q"); !s.quits() {
		t.Error("q does not leave the list")
	}
}

// Channels without a title are told apart by their type and who takes part.
func TestTheListNamesWhatHasNoTitle(t *testing.T) {
	t.Parallel()
	s := newStage(t, "")
	people := []v1.Person{{ID: "h", Name: "hana"}, {ID: "p", Name: "parrot"}}
	s.Send(join.Looked{
		Number:  s.hub.look,
		Waiting: &join.Waiting{Turns: []v1.Turn{{Channel: "c1", Type: "consulting"}, {Channel: "c2", Type: "workflow"}}},
		Rows:    []v1.Row{{ID: "c1", Type: "consulting", Participants: people}, {ID: "c3", Type: "discussion", Participants: people}},
		At:      noon,
	})
	s.Shows("consulting of hana, parrot", "workflow c2", "discussion of hana, parrot")
}

func TestEveryLineFitsEveryWindow(t *testing.T) {
	t.Parallel()
	for _, size := range []tea.WindowSizeMsg{{Width: 80, Height: 24}, {Width: 40, Height: 10}, {Width: 200, Height: 50}, {Width: 20, Height: 3}} {
		s := inTalk(t)
		s.Send(size)
		var lines []string
		for i := range 3000 {
			lines = append(lines, fmt.Sprintf("line %d %s", i, strings.Repeat("名前 ", 40)))
		}
		s.Send(join.Lines{Channel: "0190aaaa", Lines: lines})
		s.Type(strings.Repeat("typed ", 60))
		for range 3 {
			shown := strings.Split(s.Text(), "\n")
			if size.Height >= 10 && len(shown) != size.Height {
				t.Errorf("%dx%d: %d lines", size.Width, size.Height, len(shown))
			}
			for _, line := range shown {
				if ansi.StringWidth(line) > size.Width {
					t.Errorf("%dx%d: %d columns: %s", size.Width, size.Height, ansi.StringWidth(line), line)
				}
			}
			s.press(tea.KeyPgUp)
		}
		if size.Height >= 10 {
			s.Shows("lines below: PgDn")
			for range 3 {
				s.press(tea.KeyPgDown)
			}
			s.Shows("line 2999")
		}
	}
}
