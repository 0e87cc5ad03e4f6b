package v1

import (
	"context"
	"net/http"
	"net/url"
	"time"
)

// Key is an access key, without its token.
type Key struct {
	ID      string    `json:"id"`
	Role    string    `json:"role"` // operator, reader or agent
	Agent   string    `json:"agent,omitempty"`
	Created time.Time `json:"created"`
}

// AddKey makes a key with a role, or one for the agent of that name, and returns its
// token. The hub shows the token only once.
func (c *Client) AddKey(ctx context.Context, role, agent string) (token string, key Key, err error) {
	var made struct {
		Key
		Token string `json:"token"`
	}
	body := map[string]string{"role": role}
	if agent != "" {
		body["agent"] = agent
	}
	err = c.Call(ctx, http.MethodPost, "/v1/keys", body, &made)
	return made.Token, made.Key, err
}

// GiveKey makes a key from a token that an agent has already.
func (c *Client) GiveKey(ctx context.Context, agent, token string) (key Key, err error) {
	err = c.Call(ctx, http.MethodPost, "/v1/keys", map[string]string{"agent": agent, "token": token}, &key)
	return key, err
}

// Keys lists the keys.
func (c *Client) Keys(ctx context.Context) ([]Key, error) {
	var answer struct {
		Keys []Key `json:"keys"`
	}
	err := c.Call(ctx, http.MethodGet, "/v1/keys", nil, &answer)
	return answer.Keys, err
}

// RevokeKey invalidates a key's token, and returns the key.
func (c *Client) RevokeKey(ctx context.Context, id string) (Key, error) {
	var key Key
	err := c.Call(ctx, http.MethodDelete, "/v1/keys/"+url.PathEscape(id), nil, &key)
	return key, err
}
