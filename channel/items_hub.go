package channel

import (
	"bytes"
	"cmp"
	"unicode/utf8"

	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/internal/jsonscan"
	"github.com/parley-hub/parley/message"
)

// maxItemDepth bounds the nesting of payloads; the hub admits less.
const maxItemDepth = 128

// ReadOther reads the envelopes that may be in any channel: those that the hub
// writes, tasks and deltas. All others become items of the kind ItemOther. Readers
// call it for types that they do not know.
func ReadOther(dst []Item, e *envelope.Envelope) []Item {
	item := Item{Envelope: e, Speaker: e.Sender}
	switch {
	case e.Type == envelope.TypeDelta:
		item.delta()
	case envelope.IsTask(e.Type):
		item.task()
	case e.Type == envelope.TypeInviteAck:
		item.Kind = ItemJoined
	case e.Type == envelope.TypeInviteReject:
		item.Kind, item.Text = ItemLeft, TextMember(e.Data, "reason")
	case e.Origin.Dialect == envelope.OriginHub:
		item.hub()
	}
	return append(dst, item)
}

// hub reads envelopes that only the hub writes.
func (i *Item) hub() {
	data := i.Envelope.Data
	switch i.Envelope.Type {
	case envelope.TypeClosed:
		i.Kind, i.Text = ItemEnd, TextMember(data, "reason")
	case envelope.TypeExpectationViolated:
		i.Kind, i.Text = ItemExpectation, TextMember(data, "expectation")
	case envelope.TypeRemoved:
		i.Kind, i.Speaker, i.Text = ItemLeft, TextMember(data, "agent_id"), TextMember(data, "reason")
	case envelope.TypeRequest:
		i.Kind, i.ID, i.State, i.Text = ItemRequest, i.Envelope.ID, "open", TextMember(data, "title")
	case envelope.TypeAnswer, envelope.TypeRequestExpired, envelope.TypeRequestCancelled:
		i.Kind, i.ID, i.State = ItemAnswer, i.Envelope.Causation, TextMember(data, "state")
		i.Text = TextMember(data, "reason")
		if checked(data) {
			answer := jsonscan.Member(data, "answer")
			i.Text = cmp.Or(member(answer, "text"), member(answer, "choice"), i.Text)
		}
	}
}

// delta reads a piece of a text.
func (i *Item) delta() {
	data := i.Envelope.Data
	i.Kind, i.ID, i.Text = ItemDelta, TextMember(data, "causation_id"), TextMember(data, "text")
	if checked(data) {
		i.At = number(jsonscan.Member(data, "at"))
	}
}

// number reads a count; anything else is 0.
func number(digits []byte) int {
	n := 0
	for _, c := range digits {
		if c < '0' || c > '9' || n > 1<<40 {
			return 0
		}
		n = n*10 + int(c-'0')
	}
	return n
}

var taskStates = map[string]string{
	envelope.TypeTaskStarted: WorkSubmitted, envelope.TypeTaskProgress: WorkWorking, envelope.TypeTaskCompleted: WorkCompleted,
	envelope.TypeTaskFailed: WorkFailed, envelope.TypeTaskExpired: WorkExpired, envelope.TypeTaskCancelled: WorkCanceled,
}

// task reads an event of a task. An event that is not a step, such as a request to
// cancel, remains an ItemOther.
func (i *Item) task() {
	data := i.Envelope.Data
	if state, ok := taskStates[i.Envelope.Type]; ok {
		i.Kind, i.State = ItemWork, state
	}
	i.ID = cmp.Or(TextMember(data, "task_id"), i.Envelope.Task)
	if !checked(data) {
		return
	}
	switch i.Envelope.Type {
	case envelope.TypeTaskStarted:
		spec := jsonscan.Member(data, "spec")
		i.Text = cmp.Or(member(spec, "title"), member(spec, "description"), member(spec, "name"))
	case envelope.TypeTaskProgress:
		i.Text = shown(jsonscan.Member(data, "progress"))
	case envelope.TypeTaskCompleted:
		i.Text = shown(jsonscan.Member(data, "result"))
	default:
		i.Text = cmp.Or(member(data, "error"), member(data, "reason"))
	}
}

// shown returns a value as text: a string unquoted, null as nothing, all else as JSON.
func shown(value []byte) string {
	if text, ok := jsonscan.Text(value); ok {
		return text
	}
	if jsonscan.IsNull(value) {
		return ""
	}
	return string(value)
}

func member(object []byte, name string) string {
	text, _ := jsonscan.Text(jsonscan.Member(object, name))
	return text
}

func checked(data []byte) bool { return jsonscan.Check(data, maxItemDepth) == nil }

// TextMember returns a string member of a payload, or "" if it is missing or not a
// string.
func TextMember(data []byte, name string) string {
	if !bytes.Contains(data, []byte(name)) || !checked(data) {
		return ""
	}
	return member(data, name)
}

// TextItem returns the item of an envelope that is a text.
func TextItem(e *envelope.Envelope, text string) Item {
	return Item{Kind: ItemMessage, Envelope: e, Speaker: e.Sender, Message: &message.Envelope{Type: message.TypeText, Content: text}}
}

var (
	plainHead = []byte(`{"text":"`)
	plainTail = []byte(`"}`)
)

// PlainText reads a payload that has only a text without escapes, as nearly all have;
// false: it must be decoded.
func PlainText(data []byte) (string, bool) {
	rest, head := bytes.CutPrefix(data, plainHead)
	text, tail := bytes.CutSuffix(rest, plainTail)
	if !head || !tail || !WithoutEscapes(text) {
		return "", false
	}
	return string(text), true
}

// WithoutEscapes reports whether the bytes between the quotes of a JSON string need no
// decoding.
func WithoutEscapes(text []byte) bool {
	for _, c := range text {
		if c == '"' || c == '\\' || c < ' ' {
			return false
		}
	}
	return utf8.Valid(text)
}
