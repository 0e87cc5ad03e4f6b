package transcript

import (
	"github.com/go-json-experiment/json"

	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/message"
)

// ItemReader returns a reader of messages and of the beginning and end of runs. It
// keeps no state: what a record replaces or compacts has been read before it.
func (*Adapter) ItemReader(m *channel.Metadata) channel.ItemReader {
	agent := ""
	if k, err := ParseKnobs(m); err == nil {
		agent = k.Agent
	}
	return channel.ItemFunc(func(dst []channel.Item, e *envelope.Envelope) []channel.Item { return readItems(dst, e, agent) })
}

func readItems(dst []channel.Item, e *envelope.Envelope, agent string) []channel.Item {
	if !marked(e) {
		return channel.ReadOther(dst, e)
	}
	item := channel.Item{Envelope: e, Speaker: e.Sender}
	switch e.Type {
	case TypeAppended, TypeReplaced, TypeCompacted:
		var c Change
		if json.Unmarshal(e.Data, &c) != nil {
			break
		}
		switch e.Type {
		case TypeReplaced:
			item.Replaces = &channel.Span{From: c.From, To: -1}
			dst = append(dst, item)
		case TypeCompacted:
			item.Replaces = &channel.Span{To: c.Through}
			dst = append(dst, item)
		}
		for _, row := range c.Rows {
			dst = append(dst, rowItem(e, row, agent))
		}
		return dst
	case TypeStarted:
		item.Kind, item.State, item.ID = channel.ItemTurn, channel.TurnStarted, channel.TextMember(e.Data, "run_id")
		item.Name = channel.TextMember(e.Data, "agent")
	case TypeEnded:
		item.Kind, item.State, item.ID = channel.ItemTurn, channel.TurnFinished, channel.TextMember(e.Data, "run_id")
	case TypeDelta:
		var d struct {
			Run  string `json:"run_id"`
			At   int    `json:"at"`
			Text string `json:"text"`
		}
		if json.Unmarshal(e.Data, &d) == nil {
			item.Kind, item.ID, item.At, item.Text, item.Speaker, item.Name = channel.ItemDelta, d.Run, d.At, d.Text, "", agent
		}
	}
	return append(dst, item)
}

// rowItem returns one message of a transcript. The sender of every record is the
// owner, so an agent's message needs the agent as its speaker.
func rowItem(e *envelope.Envelope, row []byte, agent string) channel.Item {
	item := channel.Item{Envelope: e, Speaker: e.Sender}
	m, err := message.NormalizeJSON(row)
	if err != nil {
		return item
	}
	item.Kind, item.ID, item.Message = channel.ItemMessage, m.ID, &m
	switch m.Type {
	case message.TypeToolCall:
		item.Kind, item.ID = channel.ItemToolCall, m.ToolCallID()
	case message.TypeToolResult:
		item.Kind, item.ID = channel.ItemToolResult, m.ToolCallID()
	}
	if m.Role != message.RoleUser || m.Type == message.TypeToolResult {
		item.Speaker, item.Name = "", agent
	}
	return item
}

// Say returns the draft that appends a member's message. It begins no run.
func (*Adapter) Say(_ *channel.Metadata, _ channel.State, _ string, msg message.Envelope) ([]channel.Draft, error) {
	if _, err := channel.SaidText(msg); err != nil {
		return nil, err
	}
	msg.Role = message.RoleUser
	row, err := msg.MarshalJSON()
	if err != nil {
		return nil, fault.Wrap(fault.Invalid, err, "the message cannot be stored: %v", err)
	}
	data, err := Encode(Change{Rows: Rows{row}})
	if err != nil {
		return nil, fault.Wrap(fault.Invalid, err, "the message cannot be stored: %v", err)
	}
	return []channel.Draft{{Envelope: envelope.Envelope{Type: TypeAppended, Data: data, Ext: Mark}}}, nil
}
