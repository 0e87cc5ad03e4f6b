package branch

import (
	"cmp"
	"errors"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Raw is a JSON value that is passed on unchanged.
type Raw = jsontext.Value

// Types of content that have members of their own.
const (
	TextContent           = "text"
	ReasoningContent      = "reasoning"
	FunctionCallContent   = "functionCall"
	FunctionResultContent = "functionResult"
	DataContent           = "data"
	URIContent            = "uri"
	ErrorContent          = "error"
)

// Content is one part of a message. An unknown type is kept unchanged.
type Content struct {
	Type              string  `json:"$type"`
	Text              *string `json:"text,omitzero"`
	ProtectedData     *string `json:"protectedData,omitzero"`
	CallID            *string `json:"callId,omitzero"`
	Name              *string `json:"name,omitzero"`
	Arguments         Raw     `json:"arguments,omitzero"`
	InformationalOnly *bool   `json:"informationalOnly,omitzero"`
	Result            Raw     `json:"result,omitzero"`
	MediaType         *string `json:"mediaType,omitzero"`
	URI               *string `json:"uri,omitzero"`
	Data              *string `json:"data,omitzero"`
	Message           *string `json:"message,omitzero"`
	Properties        Raw     `json:"additionalProperties,omitzero"`
	Members           Raw     `json:",embed"`

	// whole is a content of unknown type.
	whole Raw
	// event is the payload that a projected call or result came from: a copy
	// of the message writes it again, with what contents cannot express.
	event Raw
	// args is the text of a projected call's arguments.
	args *string
}

var knownContent = map[string]bool{
	TextContent: true, ReasoningContent: true, FunctionCallContent: true, FunctionResultContent: true,
	DataContent: true, URIContent: true, ErrorContent: true,
	"hpd:image": true, "hpd:audio": true, "hpd:video": true, "hpd:document": true,
}

type contentMembers Content // without the methods

// UnmarshalJSON reads a content; null members count as absent.
func (c *Content) UnmarshalJSON(data []byte) error {
	var head struct {
		Type     string  `json:"$type"`
		MimeType *string `json:"mimeType"`
	}
	if Raw(data).Kind() == 'n' {
		return errors.New("a content is an object, not null")
	}
	if err := json.Unmarshal(data, &head); err != nil {
		return err
	}
	*c = Content{Type: head.Type}
	if !knownContent[head.Type] {
		c.whole = Raw(data).Clone()
		return nil
	}
	if err := json.Unmarshal(data, (*contentMembers)(c)); err != nil {
		return err
	}
	if head.Type == URIContent && c.MediaType == nil && head.MimeType != nil {
		c.MediaType, c.Members = head.MimeType, nil
	}
	for _, value := range []*Raw{&c.Arguments, &c.Result, &c.Properties} {
		if string(*value) == "null" {
			*value = nil
		}
	}
	return nil
}

// MarshalJSON writes a content.
func (c Content) MarshalJSON() ([]byte, error) {
	if c.whole != nil {
		return c.whole, nil
	}
	return json.Marshal(contentMembers(c))
}

// Text makes a text content.
func Text(text string) Content { return Content{Type: TextContent, Text: &text} }

// text returns a content's text, or none.
func (c *Content) text() string {
	if c.Text == nil {
		return ""
	}
	return *c.Text
}

// Roles of messages.
const (
	RoleUser      = "user"
	RoleAssistant = "assistant"
	RoleSystem    = "system"
	RoleTool      = "tool"
)

// ChatMessage is a message as clients send it and as histories project to it.
type ChatMessage struct {
	MessageID  string    `json:"messageId,omitzero"`
	Role       string    `json:"role"`
	AuthorName *string   `json:"authorName,omitzero"`
	CreatedAt  time.Time `json:"createdAt,omitzero"`
	Contents   []Content `json:"contents"`
	Properties Raw       `json:"additionalProperties,omitzero"`

	// ClientInputID is the sender's own id of the input that brought it.
	ClientInputID *string `json:"clientInputId,omitzero"`
}

type chatMembers ChatMessage // without the methods

// UnmarshalJSON also reads `text` and `content` in place of `contents`. The
// role defaults to user.
func (m *ChatMessage) UnmarshalJSON(data []byte) error {
	var read struct {
		chatMembers
		Text    *string `json:"text"`
		Content *string `json:"content"`
	}
	if Raw(data).Kind() == 'n' {
		return errors.New("a message is an object, not null")
	}
	if err := json.Unmarshal(data, &read); err != nil {
		return err
	}
	*m = ChatMessage(read.chatMembers)
	m.Role = cmp.Or(m.Role, RoleUser)
	if string(m.Properties) == "null" {
		m.Properties = nil
	}
	if m.Contents == nil {
		m.Contents = []Content{}
		switch {
		case read.Text != nil:
			m.Contents = append(m.Contents, Text(*read.Text))
		case read.Content != nil:
			m.Contents = append(m.Contents, Text(*read.Content))
		}
	}
	return nil
}
