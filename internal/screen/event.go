package screen

import (
	"encoding/json"
	"fmt"
	"strings"

	v1 "github.com/parley-hub/parley/client/v1"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/request"
)

// Line returns an envelope of a channel as one line for a person. It has no
// control characters except those of our own colours.
func Line(ch *v1.Channel, ev *v1.Event, colour bool) string {
	who := ch.Name(ev.Sender)
	if ev.Audience != nil && !strings.HasPrefix(ev.Type, "ag2.channel.") {
		names := make([]string, len(ev.Audience))
		for i, id := range ev.Audience {
			names[i] = ch.Name(id)
		}
		who += " → " + strings.Join(names, ", ")
	}
	head := fmt.Sprintf("%s %4d  ", ev.CreatedAt.Local().Format("15:04:05"), ev.Sequence)
	what, quiet := describe(ev)
	who, what = Cell(who), Cell(what)
	switch {
	case !colour:
		return head + who + ": " + what
	case quiet:
		return Dim(head + who + ": " + what)
	}
	return Dim(head) + paint(who) + ": " + what
}

// describe returns the text of an envelope, and whether it is only
// bookkeeping.
func describe(ev *v1.Event) (text string, quiet bool) {
	var data struct {
		Text    string `json:"text"`
		Body    string `json:"body"`
		Reason  string `json:"reason"`
		Routing struct {
			Kind, Tool, Reason, Target string
		} `json:"routing"`
		Title   string                              `json:"title"`
		Choices []struct{ ID string }               `json:"choices"`
		Answer  struct{ Choice, Text, Note string } `json:"answer"`
	}
	_ = json.Unmarshal(ev.Data, &data) // data of another form is shown unchanged
	switch ev.Type {
	case envelope.TypeText:
		return data.Text, false
	case envelope.TypePacket:
		text := data.Body
		switch data.Routing.Kind {
		case "handoff":
			text = strings.TrimSpace("[hands over via " + data.Routing.Tool + "] " + data.Routing.Reason + " " + text)
		case "finish":
			text = strings.TrimSpace("[finishes: " + data.Routing.Reason + "] " + text)
		}
		return text, false
	case envelope.TypeClosed, envelope.TypeExpired:
		return strings.TrimPrefix(ev.Type, "ag2.channel.") + " (" + data.Reason + ")", true
	case envelope.TypeInvite, envelope.TypeInviteAck, envelope.TypeInviteReject, envelope.TypeOpened:
		return strings.TrimPrefix(ev.Type, "ag2.channel."), true
	case request.TypeRequest:
		text := "[asks] " + data.Title
		for i, choice := range data.Choices {
			text += []string{" (", "|"}[min(i, 1)] + choice.ID
		}
		return text + strings.Repeat(")", min(len(data.Choices), 1)), false
	case request.TypeAnswer:
		return strings.Join(strings.Fields("[answers] "+data.Answer.Choice+" "+data.Answer.Text+" "+data.Answer.Note), " "), false
	case request.TypeExpired, request.TypeCancelled:
		return "[the request is " + strings.TrimPrefix(ev.Type, "parley.request.") + "] " + data.Reason, true
	}
	return ev.Type + " " + string(ev.Data), strings.HasPrefix(ev.Type, "ag2.")
}

// Dim returns a text in a weaker colour.
func Dim(s string) string { return "\x1b[2m" + s + "\x1b[0m" }

// Bold returns a text in bold.
func Bold(s string) string { return "\x1b[1m" + s + "\x1b[0m" }

// Reverse returns a text with foreground and background exchanged.
func Reverse(s string) string { return "\x1b[7m" + s + "\x1b[0m" }

// Red returns a text in red, for warnings.
func Red(s string) string { return "\x1b[1;31m" + s + "\x1b[0m" }

// paint gives each name a colour of its own.
func paint(name string) string {
	sum := 0
	for _, r := range name {
		sum = sum*31 + int(r)
	}
	return fmt.Sprintf("\x1b[1;%dm%s\x1b[0m", 31+(sum%6+6)%6, name)
}
