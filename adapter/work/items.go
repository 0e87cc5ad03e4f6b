package work

import (
	"cmp"
	"strconv"
	"time"

	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/internal/jsonbuf"
	"github.com/parley-hub/parley/internal/jsonscan"
	"github.com/parley-hub/parley/message"
)

// ReadItems reads the records of threads and direct rooms: messages and steps of work.
func ReadItems(dst []channel.Item, e *envelope.Envelope) []channel.Item {
	m, ok := Read(e)
	if !ok {
		return channel.ReadOther(dst, e)
	}
	item := channel.Item{Envelope: e, Speaker: e.Sender, Name: m.From, ID: m.Work}
	switch m.Type {
	case TypeSay, TypeCapability:
		text := m.Preview
		if m.Type == TypeSay {
			text, _ = jsonscan.Text(jsonscan.Member(e.Data, "text")) // unchanged, not trimmed
		}
		item.About, _, _ = About(m.Work)
		item.Kind, item.Message = channel.ItemMessage, &message.Envelope{Type: message.TypeText, Content: text}
	case TypeReceipt:
		item.Kind, item.Text = channel.ItemWork, cmp.Or(m.Preview, m.Status)
		switch m.Status {
		case "rejected":
			item.State = channel.WorkFailed
		case "canceled":
			item.State = channel.WorkCanceled
		default:
			item.State = channel.WorkSubmitted
		}
	case TypeTrace:
		item.Kind, item.State, item.Text = channel.ItemWork, m.State, m.Preview
	}
	return append(dst, item)
}

// protocol is that of messages which are said in another dialect.
const protocol = "agh-network/v0"

// Say makes a say of a message from another dialect. Its sender speaks as the peer that
// the message names, and under the work that it names, if that work is the sender's and
// has not ended.
func Say(c *Conversation, surface, sender string, msg message.Envelope) ([]channel.Draft, error) {
	p := c.Place
	text, err := channel.SaidText(msg)
	if err != nil {
		return nil, err
	}
	from := channel.SaidName(msg)
	if from == "" {
		return nil, fault.New(fault.NotFound, "'%s' is not a peer of the channel %q in workspace %q; join it there first", sender, p.Channel, p.Workspace).Because(fault.PeerAbsent)
	}
	at, err := time.Parse(time.DateTime, msg.CreatedAt)
	if err != nil {
		return nil, fault.New(fault.Internal, "the message has no date")
	}
	b := &jsonbuf.Buffer{}
	b.Open('{').Key("protocol").String(protocol)
	b.Key("workspace_id").String(p.Workspace).Key("kind").String("say").Key("channel").String(p.Channel)
	b.Key("surface").String(surface).Key(surface + "_id").String(p.ID)
	b.Key("from").String(from)
	if id := channel.SaidUnder(msg); id != "" {
		w, _ := c.Works.Get(id)
		if to, ok := w.counterparty(from); ok && to != "" && !w.State.Terminal() {
			b.Key("to").String(to).Key("work_id").String(id)
		}
	}
	if cause := channel.SaidBecauseOf(msg); cause != "" {
		b.Key("causation_id").String(cause)
	}
	b.Key("ts").Value([]byte(strconv.FormatInt(at.Unix(), 10)))
	ext, err := b.Key(ownID).String(msg.ID).Close('}').Result()
	if err != nil {
		return nil, fault.Wrap(fault.Invalid, err, "%v", err)
	}
	data, err := (&jsonbuf.Buffer{}).Open('{').Key("text").String(text).Close('}').Result()
	if err != nil {
		return nil, fault.Wrap(fault.Invalid, err, "text is not valid UTF-8")
	}
	return []channel.Draft{{Envelope: envelope.Envelope{Type: TypeSay, Data: data, Ext: ext, Key: from + "/" + msg.ID}}}, nil
}
