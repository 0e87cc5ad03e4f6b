package ag2

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/internal/jsonbuf"
	"github.com/parley-hub/parley/message"
)

// head returns the envelopes that AG2's clients would have read before the first
// text: an invitation, its ack, and the opening. Their ids sort before all that
// follow.
func (f *foreign) head() ([]*envelope.Envelope, error) {
	m := f.shown
	made := func(n int, eventType, sender string, audience []string, data *jsonbuf.Buffer) (*envelope.Envelope, error) {
		payload, err := data.Close('}').Result()
		return &envelope.Envelope{
			ID: headID(m.ID, n), Channel: m.ID, Sender: sender, Type: eventType, Audience: audience, Data: payload,
			Priority: envelope.Normal, CreatedAt: m.CreatedAt, Origin: envelope.Origin{Dialect: envelope.OriginHub},
		}, err
	}
	begin := func() *jsonbuf.Buffer { return (&jsonbuf.Buffer{}).Open('{').Key("channel_id").String(m.ID) }
	var list []*envelope.Envelope
	if to := f.invitee(); to != "" {
		data := begin().Key("manifest_type").String(m.Manifest.Type).Key("manifest_version").Int(m.Manifest.Version)
		data.Key("creator_id").String(m.Creator).Key("knobs").Object(nil).Key("labels").StringMap(m.Labels)
		invite, err := made(0, envelope.TypeInvite, m.Creator, []string{to}, data)
		if err != nil {
			return nil, err
		}
		ack, err := made(1, envelope.TypeInviteAck, to, nil, begin())
		if err != nil {
			return nil, err
		}
		ack.Causation = invite.ID
		list = append(list, invite, ack)
	}
	opened, err := made(2, envelope.TypeOpened, m.Creator, m.IDs(), begin())
	return append(list, opened), err
}

// headID returns the id of the nth envelope of the head, which no log holds. A
// channel's own id is minted before those of its envelopes, so that these ids sort
// before them.
func headID(channelID string, n int) string {
	own := channelID[strings.LastIndexByte(channelID, '.')+1:]
	return fmt.Sprintf("%.16s%016x", own, n)
}

// foreignReader translates the log of a foreign channel to AG2's envelopes, one by
// one, and tracks whether one identity, about, is asked to answer.
type foreignReader struct {
	channel *foreign
	items   channel.ItemReader
	buffer  []channel.Item

	about   string             // the identity whose question is tracked
	turn    string             // the identity whose turn it is, in a channel with turns
	asked   *envelope.Envelope // the text that asks it to answer; nil: none
	waiting bool               // its turn has begun
	work    string             // the work that the question is about
	late    string             // the text of a turn that ended without an answer
}

// reader returns a reader of the log from its beginning; about is the identity
// whose questions are tracked.
func (f *foreign) reader(about string) *foreignReader {
	return &foreignReader{channel: f, items: channel.ReaderOf(f.adapter, f.meta), about: about}
}

// read appends the envelopes that an envelope of the log is shown as to dst.
// Live envelopes are skipped.
func (r *foreignReader) read(dst []*envelope.Envelope, e *envelope.Envelope) []*envelope.Envelope {
	if !r.channel.sees(e) {
		return dst
	}
	r.buffer = r.items.Read(r.buffer[:0], e)
	n := 0
	for i := range r.buffer {
		item := &r.buffer[i]
		shown := r.channel.show(item)
		if shown == nil {
			continue
		}
		if n > 0 {
			shown.ID += "." + strconv.Itoa(n)
		}
		n++
		r.follow(item, shown)
		dst = append(dst, shown)
	}
	return dst
}

// follow tracks which identity is asked to answer: the one whose turn it is, or the
// one that a text addresses. An identity that speaks has answered.
func (r *foreignReader) follow(item *channel.Item, shown *envelope.Envelope) {
	switch item.Kind {
	case channel.ItemTurn:
		switch {
		case item.State == channel.TurnStarted:
			r.turn, r.waiting = item.To, item.To == r.about && r.about != ""
		case r.turn == r.about && r.about != "":
			if r.asked != nil {
				r.late = r.asked.ID
			}
			r.turn, r.waiting, r.asked = "", false, nil
		default:
			r.turn = ""
		}
	case channel.ItemMessage:
		switch {
		case r.about == "", item.Message.Type == message.TypeError: // an expired turn asks no identity
		case item.Speaker == r.about:
			r.asked, r.waiting = nil, false
		case item.About != "": // the question is in that channel instead
		case r.waiting, item.Envelope.To == r.about, slices.Contains(item.Envelope.Audience, r.about):
			r.asked, r.work = shown, item.ID
		}
	}
}

// placeholder is the prefix of types that AG2 does not have. Its clients neither
// fold nor render them.
const placeholder = "parley.item."

var workTypes = map[string]string{
	channel.WorkSubmitted: envelope.TypeTaskStarted, channel.WorkWorking: envelope.TypeTaskProgress, channel.WorkNeedsInput: envelope.TypeTaskProgress,
	channel.WorkCompleted: envelope.TypeTaskCompleted, channel.WorkFailed: envelope.TypeTaskFailed,
	channel.WorkCanceled: envelope.TypeTaskCancelled, channel.WorkExpired: envelope.TypeTaskExpired,
}

// show returns an item as an AG2 envelope, or nil for a piece of an unfinished
// message.
func (f *foreign) show(item *channel.Item) *envelope.Envelope {
	if item.Kind == channel.ItemDelta {
		return nil
	}
	e := *item.Envelope
	e.Sender, e.Ext, e.Foreign, e.Key = f.speaker(item), nil, nil, ""
	data := (&jsonbuf.Buffer{}).Open('{')
	switch item.Kind {
	case channel.ItemMessage:
		e.Type = envelope.TypeText
		data.Key("text").String(textOf(item.Message))
	case channel.ItemWork:
		e.Type, e.Task = workTypes[item.State], item.ID
		data.Key("task_id").String(item.ID)
		workData(data, item)
	case channel.ItemEnd:
		e.Type = envelope.TypeClosed
		data.Key("reason").String(item.Text).Key("channel_id").String(e.Channel)
	default:
		e.Type = placeholder + item.Kind.String()
		data.Key("type").String(item.Envelope.Type)
		text := item.Text
		if item.Message != nil {
			text = textOf(item.Message)
		}
		for _, member := range [...]struct{ name, value string }{{"id", item.ID}, {"state", item.State}, {"to", item.To}, {"text", text}} {
			if member.value != "" {
				data.Key(member.name).String(member.value)
			}
		}
	}
	var err error
	if e.Data, err = data.Close('}').Result(); err != nil || e.Type == "" {
		e.Type, e.Data = placeholder+channel.ItemOther.String(), []byte("{}")
	}
	return &e
}

// Written returns the type of the envelope that shows an item of another dialect's
// channel to AG2's clients; "" if the item is not shown.
func Written(i *channel.Item) string {
	f := &foreign{meta: &channel.Metadata{}, find: func(string) (string, bool) { return "", false }}
	if e := f.show(i); e != nil {
		return e.Type
	}
	return ""
}

func workData(data *jsonbuf.Buffer, item *channel.Item) {
	switch item.State {
	case channel.WorkSubmitted:
		data.Key("spec").Open('{').Key("title").String(item.Text).Close('}')
	case channel.WorkWorking, channel.WorkNeedsInput:
		data.Key("progress").Open('{').Key("state").String(item.State).Key("text").String(item.Text).Close('}')
	case channel.WorkCompleted:
		data.Key("result").String(item.Text)
	default:
		data.Key("error").String(item.Text)
	}
}

// speaker returns the id of the speaker. A speaker that has only a name is looked
// up, and keeps the name if it is not registered.
func (f *foreign) speaker(item *channel.Item) string {
	if item.Speaker != "" {
		return item.Speaker
	}
	if id, ok := f.find(item.Name); ok {
		return id
	}
	if item.Name != "" {
		return item.Name
	}
	return f.meta.Creator
}

// textOf returns the text of a message. For a message without text it returns a
// name, because an empty text would be read as silence.
func textOf(m *message.Envelope) string {
	if text, err := channel.SaidText(*m); err == nil {
		return text
	}
	if text, ok := m.Content.(string); ok && text != "" {
		return text
	}
	return channel.Attachment(string(m.Type))
}

// readAll passes the log of a foreign channel, as some identities see it, to take until
// take returns false.
func (s *Server) readAll(ctx context.Context, f *foreign, take func(*envelope.Envelope) bool) error {
	list, err := f.head()
	if err != nil {
		return err
	}
	for _, e := range list {
		if !take(e) {
			return nil
		}
	}
	r := f.reader("")
	for e, err := range s.cfg.Hub.Log(ctx, f.meta.ID, 0, 0) {
		if err != nil {
			return err
		}
		list = r.read(list[:0], e)
		for _, shown := range list {
			if !take(shown) {
				return nil
			}
		}
	}
	return nil
}
