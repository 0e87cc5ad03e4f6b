package v1

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
)

// ChatSession is a chat session as a list shows it.
type ChatSession struct {
	ID        string `json:"session_id"`
	Agent     string `json:"agent_slug"`
	Title     string `json:"title"`
	CreatedAt string `json:"created_at"`
	UpdatedAt string `json:"updated_at"`
	// Messages are canonical; a list shows none.
	Messages []ChatMessage `json:"messages"`
}

// ChatMessage is what a message says, if it is text.
type ChatMessage struct {
	Role    string `json:"role"`
	Content any    `json:"content"`
}

// Saying is something that is said in a chat session.
type Saying struct {
	As      string `json:"as,omitempty"`    // whose session; empty: the key's own, or the hub's chat.user
	Agent   string `json:"agent,omitempty"` // empty: the session's
	Session string `json:"session_id,omitempty"`
	Run     string `json:"run_id,omitempty"` // the same is answered as the first time
	Message string `json:"message"`
}

// ChatAnswer is how a run ended.
type ChatAnswer struct {
	Session   string `json:"session_id"`
	Run       string `json:"run_id"`
	Reply     string `json:"reply"`
	Status    string `json:"status"`
	Completed bool   `json:"completed"`
	Outcome   struct {
		Failure struct {
			Message string `json:"message"`
		} `json:"failure"`
	} `json:"run_outcome"`
}

// Say says something and waits for the answer.
func (c *Client) Say(ctx context.Context, s Saying) (*ChatAnswer, error) {
	var answer ChatAnswer
	return &answer, c.Call(ctx, http.MethodPost, "/v1/chat", s, &answer)
}

// NewChat makes an empty chat session.
func (c *Client) NewChat(ctx context.Context, agent, as string) (*ChatSession, error) {
	var made struct {
		Session ChatSession `json:"session"`
	}
	err := c.Call(ctx, http.MethodPost, "/v1/chat/sessions", map[string]string{"agent": agent, "as": as}, &made)
	return &made.Session, err
}

// Chat shows a chat session with its messages, and what the hub sent.
func (c *Client) Chat(ctx context.Context, id, as string) (*ChatSession, json.RawMessage, error) {
	var raw json.RawMessage
	if err := c.Call(ctx, http.MethodGet, chatPath(id)+"?"+url.Values{"as": {as}}.Encode(), nil, &raw); err != nil {
		return nil, nil, err
	}
	var shown struct {
		Session ChatSession `json:"session"`
	}
	return &shown.Session, raw, json.Unmarshal(raw, &shown)
}

// FollowChat streams a chat session after a position, as Follow does.
func (c *Client) FollowChat(ctx context.Context, id, after string, begun func(), visit func(Frame) error) error {
	return c.FollowFrom(ctx, chatPath(id)+"/events", after, begun, visit)
}

func chatPath(id string) string { return "/v1/chat/sessions/" + url.PathEscape(id) }
