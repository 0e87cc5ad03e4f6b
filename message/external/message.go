package external

import (
	"cmp"
	"errors"

	"github.com/parley-hub/parley/message/value"
)

// The refusals of an external message.
var (
	ErrConnector = errors.New("connector_id must be a non-empty slug.")         //nolint:staticcheck // the contract's text
	ErrProvider  = errors.New("external_provider must be a non-empty slug.")    //nolint:staticcheck // the contract's text
	ErrRoomKind  = errors.New("room_kind must be dm, group, channel, or null.") //nolint:staticcheck // the contract's text
)

// Message is what a channel received, whatever the network. Empty ids and room
// kind are null.
type Message struct {
	Text           string
	ConnectorID    string
	Provider       string
	ConversationID string
	MessageID      string
	SenderID       string
	FromSelf       bool
	RoomKind       string
	Attachments    []any
	Raw            *value.Map
}

// Normalize reads an external message.
func Normalize(raw any) (Message, error) {
	m := value.MapOrEmpty(value.Of(raw))
	msg := Message{
		Text:           trimmed(m.At("text")),
		ConversationID: trimmed(m.At("external_conversation_id")),
		MessageID:      trimmed(m.At("external_message_id")),
		SenderID:       trimmed(m.At("sender_id")),
		FromSelf:       value.Truthy(m.At("from_self")),
		RoomKind:       trimmed(m.At("room_kind")),
		Attachments:    []any{},
		Raw:            value.StringKeys(m.At("raw")),
	}
	var ok bool
	if msg.ConnectorID, ok = slug(m.At("connector_id")); !ok {
		return Message{}, ErrConnector
	}
	if msg.Provider, ok = slug(m.At("external_provider")); !ok {
		return Message{}, ErrProvider
	}
	switch msg.RoomKind {
	case "", "dm", "group", "channel":
	default:
		return Message{}, ErrRoomKind
	}
	if list, ok := value.Values(m.At("attachments")); ok {
		msg.Attachments = list
	}
	return msg, nil
}

// Canonical returns the message as a map.
func (m Message) Canonical() *value.Map {
	return value.New().
		Set("text", m.Text).
		Set("connector_id", m.ConnectorID).
		Set("external_provider", m.Provider).
		Set("external_conversation_id", orNull(m.ConversationID)).
		Set("external_message_id", orNull(m.MessageID)).
		Set("sender_id", orNull(m.SenderID)).
		Set("from_self", m.FromSelf).
		Set("room_kind", orNull(m.RoomKind)).
		Set("attachments", m.Attachments).
		Set("raw", m.Raw)
}

// SourceChannel is the source of what came through a channel.
const SourceChannel = "channel"

// ClientContext describes to a chat where a message came from: source is one of
// channel, bridge, rest, block, peer-agent and jsonrpc; an empty client name is
// the connector's id.
func (m Message) ClientContext(source, clientName string) *value.Map {
	clientName = cmp.Or(clientName, m.ConnectorID)
	return value.New().
		Set("source", source).
		Set("connector_id", m.ConnectorID).
		Set("client_name", clientName).
		Set("external_provider", m.Provider).
		Set("external_conversation_id", orNull(m.ConversationID)).
		Set("external_message_id", orNull(m.MessageID)).
		Set("sender_id", orNull(m.SenderID)).
		Set("room_kind", orNull(m.RoomKind))
}

// ChatInput returns the input of agents/chat for this message; an empty session
// id is null.
func (m Message) ChatInput(agent, sessionID string) *value.Map {
	return value.New().
		Set("agent", agent).
		Set("message", m.Text).
		Set("session_id", orNull(sessionID)).
		Set("attachments", m.Attachments).
		Set("client_context", m.ClientContext(SourceChannel, ""))
}

func trimmed(v any) string { return value.Trim(value.Text(v)) }

func orNull(s string) any {
	if s == "" {
		return nil
	}
	return s
}
