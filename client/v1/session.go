package v1

import (
	"context"
	"net/http"
	"net/url"
	"time"
)

// Session describes the caller as the hub identified it, and the hub.
type Session struct {
	Role      string     `json:"role"` // operator, reader, agent or anonymous
	Agent     string     `json:"agent"`
	AgentID   string     `json:"agent_id"`
	Key       string     `json:"key"`
	Via       string     `json:"via"` // loopback, bearer or session
	ExpiresAt *time.Time `json:"expires_at"`
	May       []string   `json:"may"` // ids of operations that the role does not rule out
	KeysExist bool       `json:"keys_exist"`
	Hub       struct {
		Version   string    `json:"version"`
		Name      string    `json:"name"`
		StartedAt time.Time `json:"started_at"`
		Epoch     string    `json:"epoch"`
	} `json:"hub"`
	Now time.Time `json:"now"`
}

// Session returns the caller's session.
func (c *Client) Session(ctx context.Context) (*Session, error) {
	s := &Session{}
	return s, c.Call(ctx, http.MethodGet, "/v1/session", nil, s)
}

// SessionCode makes a code with which a browser signs in once, within a minute.
func (c *Client) SessionCode(ctx context.Context) (code string, expires time.Time, err error) {
	var made struct {
		Code      string    `json:"code"`
		ExpiresAt time.Time `json:"expires_at"`
	}
	err = c.Call(ctx, http.MethodPost, "/v1/session/codes", nil, &made)
	return made.Code, made.ExpiresAt, err
}

// BrowserSession is a browser that is signed in.
type BrowserSession struct {
	ID        string    `json:"id"`
	Key       string    `json:"key"`
	CreatedAt time.Time `json:"created_at"`
	ExpiresAt time.Time `json:"expires_at"`
	Address   string    `json:"address"`
}

// Sessions lists the browsers that are signed in with the client's key, or all if it
// is an operator's.
func (c *Client) Sessions(ctx context.Context) ([]BrowserSession, error) {
	var answer struct {
		Sessions []BrowserSession `json:"sessions"`
	}
	err := c.Call(ctx, http.MethodGet, "/v1/sessions", nil, &answer)
	return answer.Sessions, err
}

// EndSession signs a browser out and ends its open requests.
func (c *Client) EndSession(ctx context.Context, id string) error {
	return c.Call(ctx, http.MethodDelete, "/v1/sessions/"+url.PathEscape(id), nil, nil)
}
