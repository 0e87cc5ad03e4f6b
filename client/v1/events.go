package v1

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"
)

// Event is an envelope of a channel, with its place in the log.
type Event struct {
	Position  string          `json:"position"`
	Sequence  uint64          `json:"sequence"`
	ID        string          `json:"envelope_id"`
	Channel   string          `json:"channel_id"`
	Sender    string          `json:"sender_id"`
	Audience  []string        `json:"audience"` // nil means everyone
	Type      string          `json:"event_type"`
	Data      json.RawMessage `json:"event_data"`
	CreatedAt time.Time       `json:"created_at"`

	Raw json.RawMessage `json:"-"` // the event as the hub sent it
}

// ParseEvent decodes an event as pages and streams carry it.
func ParseEvent(raw []byte) (*Event, error) {
	ev := &Event{Raw: raw}
	if err := json.Unmarshal(raw, ev); err != nil {
		return nil, err
	}
	return ev, nil
}

// Posting is what Send puts into a channel: Text, or Type and Data.
type Posting struct {
	Sender   string          `json:"sender"` // name or id
	Text     *string         `json:"text,omitempty"`
	Type     string          `json:"event_type,omitempty"`
	Data     json.RawMessage `json:"event_data,omitempty"`
	Audience []string        `json:"audience,omitempty"`        // names or ids; nil means everyone
	Key      string          `json:"idempotency_key,omitempty"` // a repeated key is sent once
	Cause    string          `json:"causation_id,omitempty"`    // the envelope that this one answers
}

// Sent names the envelope that a request put into a channel.
type Sent struct {
	ID string `json:"envelope_id"`
}

// Send puts an envelope into a channel. It returns when the envelope is
// durable.
func (c *Client) Send(ctx context.Context, channel string, p Posting) (Sent, error) {
	var sent Sent
	err := c.Call(ctx, http.MethodPost, channelPath(channel)+"/events", p, &sent)
	return sent, err
}

// ShowLive sends data of a type to the current followers of a channel; it is not
// stored. The sender is a name or id.
func (c *Client) ShowLive(ctx context.Context, channel, sender, eventType string, data any) error {
	body := map[string]any{"sender": sender, "event_type": eventType, "event_data": data}
	return c.Call(ctx, http.MethodPost, channelPath(channel)+"/live", body, nil)
}

// EventQuery selects events of a channel.
type EventQuery struct {
	As    string // only what this name or id may see; empty: what the token may see
	After string // only after this position; empty: from the start
}

func (q EventQuery) values() url.Values {
	v := url.Values{}
	if q.As != "" {
		v.Set("as", q.As)
	}
	return v
}

// Events calls visit with the events of a channel, in order, up to its current end. It
// holds one event at a time. An error of visit ends the reading and is returned.
func (c *Client) Events(ctx context.Context, channel string, query EventQuery, visit func(*Event) error) error {
	after := query.After
	for {
		q := query.values()
		q.Set("limit", "1000")
		if after != "" {
			q.Set("after", after)
		}
		page, err := c.eventPage(ctx, channelPath(channel)+"/events?"+q.Encode(), visit)
		if err != nil {
			return err
		}
		if after = page.Next; !page.More {
			return nil
		}
	}
}

// FollowEvents streams the events of a channel as Follow does.
func (c *Client) FollowEvents(ctx context.Context, channel string, query EventQuery, visit func(Frame) error) error {
	path := channelPath(channel) + "/events"
	if q := query.values(); len(q) > 0 {
		path += "?" + q.Encode()
	}
	return c.Follow(ctx, path, query.After, visit)
}

// eventPage reads one page. The answer must begin soon; reading it takes as
// long as visit does.
func (c *Client) eventPage(ctx context.Context, path string, visit func(*Event) error) (pageEnd, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	late := time.AfterFunc(callTimeout, func() { cancel(fmt.Errorf("no answer in %s", callTimeout)) })
	answer, err := c.Download(ctx, path)
	late.Stop()
	if err != nil {
		return pageEnd{}, err
	}
	defer answer.Close()
	return readEvents(answer, visit)
}

// pageEnd says whether another page follows.
type pageEnd struct {
	Next string
	More bool
}

// readEvents calls visit with each event of a page as it arrives.
func readEvents(r io.Reader, visit func(*Event) error) (end pageEnd, err error) {
	body := &bounded{r: r, left: MaxAnswer}
	in := json.NewDecoder(body)
	unexpected := func(err error) error {
		return fmt.Errorf("the hub's answer is not the page that was expected: %w", err)
	}
	if _, err := in.Token(); err != nil {
		return end, unexpected(err)
	}
	for in.More() {
		name, err := in.Token()
		if err != nil {
			return end, unexpected(err)
		}
		switch name {
		case "events":
			var failed error
			err = eachItem(in, func(raw json.RawMessage) error {
				body.left = MaxAnswer
				ev, err := ParseEvent(raw)
				if err != nil {
					return err
				}
				failed = visit(ev)
				return failed
			})
			if failed != nil {
				return end, failed
			}
		case "next":
			err = in.Decode(&end.Next)
		case "more":
			err = in.Decode(&end.More)
		default:
			err = in.Decode(new(json.RawMessage))
		}
		if err != nil {
			return end, unexpected(err)
		}
	}
	if _, err := in.Token(); err != nil {
		return end, unexpected(err)
	}
	return end, nil
}

// eachItem reads an array, one item at a time.
func eachItem(in *json.Decoder, each func(json.RawMessage) error) error {
	if open, err := in.Token(); err != nil || open != json.Delim('[') {
		return errors.Join(err, fmt.Errorf("a list is expected, not %v", open))
	}
	for in.More() {
		var raw json.RawMessage
		if err := in.Decode(&raw); err != nil {
			return err
		}
		if err := each(raw); err != nil {
			return err
		}
	}
	_, err := in.Token()
	return err
}
