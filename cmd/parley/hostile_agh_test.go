package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/parley-hub/parley/dialect/dialecttest"
)

// AGH's HTTP interface survives every hostile client. A conversation is a direct
// room, in a channel that the operator joins both to.
func TestHostileClientsOfAGH(t *testing.T) {
	t.Parallel()
	dialecttest.Run(t, dialecttest.Door{
		Start: startAGHSite,
		Garbage: map[string][]byte{
			"no session":      []byte(`{"kind":"say","body":{"text":"x"}}`),
			"unknown session": []byte(`{"session_id":"none","kind":"say","body":{"text":"x"}}`),
			"unknown kind":    []byte(`{"session_id":"none","kind":"no such","body":{}}`),
			"unknown member":  []byte(`{"session_id":"none","proof":{},"from":"honest-a"}`),
			"other workspace": []byte(`{"session_id":"none","workspace_id":"elsewhere","body":{"text":"x"}}`),
			"older protocol":  []byte(`{"session_id":"none","interaction_id":"x","body":{"text":"x"}}`),
		},
	})
}

const aghSpace = "/agh/workspaces/siege/network"

// aghRoom is a direct room of two, as a conversation is named.
type aghRoom struct {
	Channel, Direct string
	Peers           []string          // both
	Sessions        map[string]string // by peer
}

func (r aghRoom) name() string {
	raw, _ := json.Marshal(r) // of strings
	return string(raw)
}

func roomOfAGH(name string) (r aghRoom) {
	_ = json.Unmarshal([]byte(name), &r) // one that is not ours is empty
	return r
}

func startAGHSite(t *testing.T, o dialecttest.Options) *dialecttest.Site {
	t.Helper()
	s := &site{t: t}
	door := startSite(s, o)
	door.Join = func(name, token string) (dialecttest.Client, error) { return s.joinAGH(name, token) }
	door.Stranger = func() (dialecttest.Client, error) { return &aghWire{newHTTPWire(s, "", "")}, nil }
	rooms := 0
	door.Meet = func(a, b dialecttest.Client) string {
		rooms++
		room, err := s.meetAGH(fmt.Sprint("room", rooms), a.(*aghWire), b.(*aghWire))
		if err != nil {
			t.Fatal(err)
		}
		return room.name()
	}
	door.Asks = func(c dialecttest.Client, room string) dialecttest.Request {
		return c.(*aghWire).asks(http.MethodGet, roomOfAGH(room).messages(), "")
	}
	door.Tells = func(c dialecttest.Client, room string) dialecttest.Request {
		return c.(*aghWire).asks(http.MethodPost, aghSpace+"/send", roomOfAGH(room).saying(t, c.ID(), []byte(`{}`)))
	}
	door.Unread = func(c dialecttest.Client, room string) []dialecttest.Request {
		w := c.(*aghWire)
		return []dialecttest.Request{
			w.asks(http.MethodGet, roomOfAGH(room).messages(), ""), w.asks(http.MethodGet, roomOfAGH(room).messages()+"/live", ""),
		}
	}
	door.Tricks = append(tricks("/agh/workspaces/", "/network/peers"), tricks(aghSpace+"/channels/", "/threads")...)
	door.Tricks = append(door.Tricks, tricks(aghSpace+"/work/", "")...)
	return door
}

// meetAGH joins two to a channel of their own, in which each waits for messages.
func (s *site) meetAGH(channel string, a, b *aghWire) (aghRoom, error) {
	room := aghRoom{Channel: channel, Peers: []string{a.name, b.name}, Sessions: map[string]string{}}
	for _, w := range []*aghWire{a, b} {
		var joined struct {
			SessionID string `json:"session_id"`
		}
		err := s.ask(http.MethodPost, aghSpace+"/channels/"+channel+"/peers", fmt.Sprintf(`{"agent":%q,"peer_id":%q}`, w.name, w.name), &joined)
		if err != nil {
			return room, err
		}
		room.Sessions[w.name] = joined.SessionID
		if err := w.wait(joined.SessionID); err != nil {
			return room, err
		}
	}
	raw, err := a.do(http.MethodPost, aghSpace+"/channels/"+channel+"/directs/resolve",
		fmt.Sprintf(`{"session_id":%q,"peer_id":%q}`, room.Sessions[a.name], b.name))
	var resolved struct {
		Direct struct {
			ID string `json:"direct_id"`
		}
	}
	if err == nil {
		err = json.Unmarshal(raw, &resolved)
	}
	room.Direct = resolved.Direct.ID
	return room, err
}

func (r aghRoom) messages() string {
	return aghSpace + "/channels/" + r.Channel + "/directs/" + r.Direct + "/messages"
}

// saying is what one says in the room; who is not of it speaks through the first.
func (r aghRoom) saying(t *testing.T, from string, data []byte) string {
	t.Helper()
	if r.Sessions[from] == "" {
		from = r.Peers[0]
	}
	to := r.Peers[0]
	if from == to {
		to = r.Peers[1]
	}
	return fmt.Sprintf(`{"session_id":%q,"channel":%q,"kind":"say","surface":"direct","to":%q,"body":{"text":%s}}`, r.Sessions[from], r.Channel, to, quoted(t, data))
}

// aghWire is an agent whose sessions wait for messages.
type aghWire struct {
	*httpWire
}

func (s *site) joinAGH(name, token string) (*aghWire, error) {
	w := &aghWire{newHTTPWire(s, name, token)}
	if _, err := w.do(http.MethodGet, "/agh/network/status", ""); err != nil {
		return nil, err
	}
	return w, nil
}

// wait asks for the messages of a session, again and again.
func (w *aghWire) wait(session string) error {
	w.mu.Lock()
	c, err := w.connect()
	w.streams++
	w.mu.Unlock()
	if err != nil {
		return err
	}
	path := aghSpace + "/inbox?session_id=" + session
	go func() {
		defer w.left()
		for from := bufio.NewReader(c); w.poll(c, from, path); {
		}
	}()
	return nil
}

// poll asks once, and reports whether the hub still answers. A stalled client
// asks on and reads nothing.
func (w *aghWire) poll(c net.Conn, from *bufio.Reader, path string) bool {
	ask := func(path string) error {
		_ = c.SetWriteDeadline(time.Now().Add(dialecttest.Wait))
		_, err := fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: localhost\r\n%s\r\n", path, w.authorization())
		return err
	}
	select {
	case <-w.stalled:
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for range tick.C {
			if ask(path) != nil {
				return false
			}
		}
	default:
	}
	if ask(path+"&wait=10s") != nil {
		return false
	}
	answer, err := http.ReadResponse(from, nil)
	if err != nil {
		return false
	}
	defer answer.Body.Close() //nolint:errcheck // it was read
	var inbox struct {
		Messages []struct {
			ID, From string
			Body     struct{ Text string }
		}
	}
	if answer.StatusCode != http.StatusOK || json.NewDecoder(answer.Body).Decode(&inbox) != nil {
		return false
	}
	for _, m := range inbox.Messages {
		if _, err := w.do(http.MethodPost, strings.Replace(path, "/inbox?", "/inbox/"+m.From+"/"+m.ID+"/done?", 1), ""); err != nil {
			return false
		}
		w.hear(m.From, []byte(m.Body.Text))
	}
	return true
}

func (w *aghWire) Say(room string, data []byte) error { return w.SayAs(room, w.name, data) }

func (w *aghWire) SayAs(room, sender string, data []byte) error {
	_, err := w.do(http.MethodPost, aghSpace+"/send", roomOfAGH(room).saying(w.t, sender, data))
	return err
}

func (w *aghWire) Read(room string) error {
	_, err := w.do(http.MethodGet, roomOfAGH(room).messages(), "")
	return err
}

func (w *aghWire) Look(limit int64) (int, error) { return w.look(aghSpace+"/peers?", "peers", limit) }

func (w *aghWire) Send(message []byte) error {
	return w.send(http.MethodPost, aghSpace+"/send", message)
}
