package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/parley-hub/parley/dialect/dialecttest"
)

// The hub's own HTTP interface survives every hostile client.
func TestHostileClientsOfV1(t *testing.T) {
	t.Parallel()
	dialecttest.Run(t, dialecttest.Door{
		Start: startV1Site,
		Garbage: map[string][]byte{
			"no sender":      []byte(`{"text":"x"}`),
			"unknown member": []byte(`{"text":"x","no such":1}`),
			"wrong type":     []byte(`{"text":["x"]}`),
			"both forms":     []byte(`{"text":"x","event_type":"ag2.msg.text","event_data":{}}`),
			"list":           []byte(`[{"text":"x"}]`),
		},
	})
}

func startV1Site(t *testing.T, o dialecttest.Options) *dialecttest.Site {
	t.Helper()
	s := &site{t: t}
	door := startSite(s, o)
	door.Join = func(name, token string) (dialecttest.Client, error) { return s.joinV1(name, token) }
	door.Stranger = func() (dialecttest.Client, error) { return &v1Wire{httpWire: newHTTPWire(s, "", "")}, nil }
	door.Meet = func(a, b dialecttest.Client) string {
		raw, err := a.(*v1Wire).do(http.MethodPost, "/v1/channels", fmt.Sprintf(`{"type":"conversation","participants":[%q]}`, b.ID()))
		var ch struct {
			ID string `json:"channel_id"`
		}
		if err == nil {
			err = json.Unmarshal(raw, &ch)
		}
		if err != nil {
			t.Fatal(err)
		}
		return ch.ID
	}
	door.Asks = func(c dialecttest.Client, room string) dialecttest.Request {
		return c.(*v1Wire).asks(http.MethodGet, "/v1/channels/"+room+"/events", "")
	}
	door.Tells = func(c dialecttest.Client, room string) dialecttest.Request {
		return c.(*v1Wire).asks(http.MethodPost, "/v1/channels/"+room+"/events", `{"text":"forged"}`)
	}
	door.Unread = func(c dialecttest.Client, room string) []dialecttest.Request {
		w, at := c.(*v1Wire), "/v1/channels/"+room
		return []dialecttest.Request{ // a page is no longer than what the kernel keeps, a view longer than all that may be held
			w.asks(http.MethodGet, at+"/events?follow=true", ""), w.asks(http.MethodGet, "/v1/events?follow=true", ""),
			w.asks(http.MethodGet, at+"/export", ""),
		}
	}
	door.Tricks = tricks("/v1/channels/", "/events")
	return door
}

// tricks are paths around one that names something.
func tricks(before, after string) []string {
	all := []string{"//evil.example/..", "/%2f%2fevil.example", "/\\evil.example/", strings.Repeat("/a", 20_000)}
	for _, name := range []string{
		"..", ".", "%2e%2e", "..%2f..%2fkeys", "%2e%2e%2f%2e%2e%2fkeys", "a%00b", "%ff%fe", "a%0d%0aSet-Cookie:%20x=y", "*", "%2a", "~", "a;b",
		"a%252fb", "a%5c..%5cb", "%e2%80%ae", strings.Repeat("x", 5000),
	} {
		all = append(all, before+name+after)
	}
	return all
}

// v1Wire is a client of /v1.
type v1Wire struct {
	*httpWire
	id string
}

func (s *site) joinV1(name, token string) (*v1Wire, error) {
	w := &v1Wire{httpWire: newHTTPWire(s, name, token)}
	if _, err := w.do(http.MethodPost, "/v1/agents", fmt.Sprintf(`{"name":%q}`, name)); err != nil && !strings.Contains(err.Error(), "409") {
		return nil, err
	}
	var me struct {
		Passport struct {
			ID string `json:"agent_id"`
		} `json:"passport"`
	}
	raw, err := w.do(http.MethodGet, "/v1/agents/"+name, "")
	if err == nil {
		err = json.Unmarshal(raw, &me)
	}
	if err != nil {
		return nil, err
	}
	w.id = me.Passport.ID
	_, err = w.follow("/v1/events?follow=true", func(_ string, data []byte) { w.take(data) })
	if err != nil {
		w.Close()
		return nil, err
	}
	return w, nil
}

func (w *v1Wire) take(data []byte) {
	var e struct {
		Channel string          `json:"channel_id"`
		Sender  string          `json:"sender_id"`
		Type    string          `json:"event_type"`
		Data    json.RawMessage `json:"event_data"`
	}
	if json.Unmarshal(data, &e) != nil {
		return
	}
	switch e.Type {
	case "ag2.channel.invite":
		_, _ = w.do(http.MethodPost, "/v1/channels/"+e.Channel+"/events",
			fmt.Sprintf(`{"event_type":"ag2.channel.invite.ack","event_data":{"channel_id":%q}}`, e.Channel)) // who invited itself is refused
	case "ag2.msg.text":
		if e.Sender != w.id {
			w.hear(e.Sender, e.Data)
		}
	}
}

func (w *v1Wire) ID() string { return w.id }

func (w *v1Wire) Say(room string, data []byte) error { return w.SayAs(room, "", data) }

func (w *v1Wire) SayAs(room, sender string, data []byte) error {
	_, err := w.do(http.MethodPost, "/v1/channels/"+room+"/events",
		fmt.Sprintf(`{"sender":%q,"event_type":"ag2.msg.text","event_data":%s}`, sender, data))
	return err
}

func (w *v1Wire) Read(room string) error {
	_, err := w.do(http.MethodGet, "/v1/channels/"+room+"/events", "")
	return err
}

func (w *v1Wire) Look(limit int64) (int, error) { return w.look("/v1/agents?", "agents", limit) }

func (w *v1Wire) Send(message []byte) error {
	return w.send(http.MethodPost, "/v1/channels/none/events", message)
}
