package main

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gobwas/ws"
	"github.com/gobwas/ws/wsutil"

	"github.com/parley-hub/parley/dialect/ag2"
	"github.com/parley-hub/parley/dialect/dialecttest"
	"github.com/parley-hub/parley/server/access"
	"github.com/parley-hub/parley/server/config"
)

// AG2's wire survives every hostile client, as a whole hub serves it.
func TestHostileClientsOfAG2(t *testing.T) {
	t.Parallel()
	dialecttest.Run(t, dialecttest.Door{
		Start: startAG2Site,
		Garbage: map[string][]byte{
			"unknown kind":   []byte(`{"kind":"no such"}`),
			"unknown op":     []byte(`{"kind":"request","request_id":"1","op":"no such","params":{}}`),
			"params no list": []byte(`{"kind":"request","request_id":"1","op":"list_agents","params":[]}`),
			"envelope null":  []byte(`{"kind":"request","request_id":"1","op":"post_envelope","params":{"envelope":null}}`),
			"hello twice":    []byte(`{"kind":"hello","name":"honest-a","auth_scheme":"api_key","auth_claim":{"token":"x"}}`),
		},
	})
}

// site is a running hub with an operator's key.
type site struct {
	t     *testing.T
	at    started
	token string
}

func startAG2Site(t *testing.T, o dialecttest.Options) *dialecttest.Site {
	t.Helper()
	s := &site{t: t}
	door := startSite(s, o)
	door.Keyless = !o.Proxied
	door.Join = func(name, token string) (dialecttest.Client, error) { return s.join(name, token) }
	door.Stranger = func() (dialecttest.Client, error) { return s.dial() }
	door.Meet = func(a, b dialecttest.Client) string {
		var ch struct {
			ID string `json:"channel_id"`
		}
		result, err := a.(*ag2Wire).call("create_channel", map[string]any{
			"creator_id": a.ID(), "manifest_type": "conversation", "participants": []string{b.ID()},
		})
		if err == nil {
			err = json.Unmarshal(result, &ch)
		}
		if err != nil {
			t.Fatal(err)
		}
		return ch.ID
	}
	door.Asks = func(dialecttest.Client, string) dialecttest.Request {
		return dialecttest.Request{
			Method: http.MethodGet, Path: "/",
			Header: "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n",
		}
	}
	return door
}

// firstKey gives a folder the key of an operator: in the file that older versions
// kept, which is imported.
func firstKey(t *testing.T, dir string) (token string) {
	t.Helper()
	token = "parley_0123456789ab_" + rand.Text()
	sum := sha256.Sum256([]byte(token)) // its salt is empty
	content := fmt.Sprintf(`{"version":2,"keys":[{"id":"0123456789ab","role":"operator","created":"2026-03-09T10:15:42Z","salt":"","hash":"%x"}],"agents":[]}`, sum)
	if err := os.WriteFile(filepath.Join(dir, access.KeysFile), []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return token
}

// startSite runs a hub for a site, with what every dialect's has.
func startSite(s *site, o dialecttest.Options) *dialecttest.Site {
	t := s.t
	t.Helper()
	s.at = runningHub(t, func(c *config.Config) {
		s.token = firstKey(t, c.Data.Dir)
		c.HTTP.BehindProxy = o.Proxied
		if o.Connections > 0 {
			c.HTTP.MaxConnections, c.Limits.ConnectionsPeer = o.Connections, o.Connections
		}
		if o.Answers > 0 {
			c.Limits.Answers = config.Bytes(o.Answers)
		}
		if o.Reads > 0 {
			c.Limits.Reads = config.Bytes(o.Reads)
		}
		if o.Patience > 0 {
			c.HTTP.HeaderTimeout, c.HTTP.BodyTimeout, c.HTTP.IdleTimeout = o.Patience, o.Patience, o.Patience
			c.Limits.FollowerWrite, ag2.Section.Of(c).Limits.Handshake, ag2.Section.Of(c).Limits.Write = o.Patience, o.Patience, o.Patience
		}
	})
	return &dialecttest.Site{
		Key: func(agent string) (token, id string) {
			var key struct{ ID, Token string }
			if err := s.ask(http.MethodPost, "/v1/keys", fmt.Sprintf(`{"agent":%q}`, agent), &key); err != nil {
				t.Fatal(err)
			}
			return key.Token, key.ID
		},
		Revoke: func(id string) {
			if err := s.ask(http.MethodDelete, "/v1/keys/"+id, "", nil); err != nil {
				t.Fatal(err)
			}
		},
		Socket: func() (net.Conn, error) {
			return (&net.Dialer{}).DialContext(t.Context(), "tcp", strings.TrimPrefix(s.at.URL, "http://"))
		},
		Operator: func() error { return s.ask(http.MethodGet, "/v1/keys", "", nil) },
	}
}

// ask asks as the operator, on a connection of its own.
func (s *site) ask(method, path, body string, into any) error {
	request, err := http.NewRequestWithContext(s.t.Context(), method, s.at.URL+path, strings.NewReader(body))
	if err != nil {
		return err
	}
	if s.token != "" {
		request.Header.Set("Authorization", "Bearer "+s.token)
	}
	answer, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: dialecttest.Wait}).Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	raw, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode >= 300 {
		return errors.Join(err, fmt.Errorf("%s: %s", answer.Status, raw))
	}
	if into == nil || len(raw) == 0 {
		return nil
	}
	return json.Unmarshal(raw, into)
}

// ag2Wire is a client that knows nothing but AG2's frames.
type ag2Wire struct {
	conn net.Conn
	id   string
	gone chan struct{}
	said chan saying
	stop chan struct{} // closed to stall

	mu      sync.Mutex
	next    int
	waiting map[string]chan answer
	once    sync.Once
}

type saying struct {
	sender string
	data   json.RawMessage
}

type answer struct {
	OK      bool            `json:"ok"`
	Result  json.RawMessage `json:"result"`
	Message string          `json:"error_message"`
}

func (s *site) dial() (*ag2Wire, error) {
	ctx, cancel := context.WithTimeout(s.t.Context(), dialecttest.Wait)
	defer cancel()
	conn, early, _, err := ws.Dialer{NetDial: func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := (&net.Dialer{}).DialContext(ctx, network, address)
		if tcp, ok := c.(*net.TCPConn); ok {
			_ = tcp.SetReadBuffer(64 << 10) // a stuck reader is noticed soon
		}
		return c, err
	}}.Dial(ctx, s.at.Agents)
	if err != nil {
		return nil, err
	}
	w := &ag2Wire{
		conn: conn, gone: make(chan struct{}), stop: make(chan struct{}), said: make(chan saying, 1024), waiting: map[string]chan answer{},
	}
	var reader io.Reader = conn
	if early != nil {
		reader = io.MultiReader(early, conn)
	}
	go w.read(reader)
	s.t.Cleanup(w.Close)
	return w, nil
}

func (s *site) join(name, token string) (*ag2Wire, error) {
	w, err := s.dial()
	if err != nil {
		return nil, err
	}
	auth := map[string]any{"scheme": "none", "claim": map[string]any{}}
	if token != "" {
		auth = map[string]any{"scheme": "api_key", "claim": map[string]any{"token": token}}
	}
	result, err := w.call("register", map[string]any{"passport": map[string]any{"name": name, "auth": auth}, "resume": map[string]any{}})
	if err != nil && strings.Contains(err.Error(), "attach") { // it exists
		return w, w.attach(name, auth)
	}
	var passport struct {
		ID string `json:"agent_id"`
	}
	if err == nil {
		err = json.Unmarshal(result, &passport)
	}
	if err != nil {
		w.Close()
		return nil, err
	}
	w.id = passport.ID
	return w, nil
}

// attach says hello as one that exists.
func (w *ag2Wire) attach(name string, auth map[string]any) error {
	hello, err := json.Marshal(map[string]any{"kind": "hello", "name": name, "auth_scheme": auth["scheme"], "auth_claim": auth["claim"]})
	if err != nil {
		return err
	}
	welcome := w.expect("hello")
	if err := w.Send(hello); err != nil {
		return err
	}
	_, err = w.await(welcome)
	if err != nil {
		w.Close()
	}
	return err
}

func (w *ag2Wire) read(from io.Reader) {
	defer close(w.gone)
	stream := struct {
		io.Reader
		io.Writer
	}{from, w.conn}
	for {
		select {
		case <-w.stop: // what the hub does is seen when the connection ends
			w.untilEnd()
			return
		default:
		}
		raw, _, err := wsutil.ReadServerData(stream)
		if err != nil {
			return
		}
		w.take(raw)
	}
}

// untilEnd waits for the end of a connection without reading what is sent.
func (w *ag2Wire) untilEnd() {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for range tick.C {
		if w.Send([]byte(`{"kind":"pong"}`)) != nil {
			return
		}
	}
}

func (w *ag2Wire) take(raw []byte) {
	var f struct {
		answer
		Kind      string `json:"kind"`
		RequestID string `json:"request_id"`
		Recipient string `json:"recipient_id"`
		Text      string `json:"message"`
		Envelope  struct {
			ID      string          `json:"envelope_id"`
			Channel string          `json:"channel_id"`
			Sender  string          `json:"sender_id"`
			Type    string          `json:"event_type"`
			Data    json.RawMessage `json:"event_data"`
		} `json:"envelope"`
	}
	if json.Unmarshal(raw, &f) != nil {
		return
	}
	switch f.Kind {
	case "response":
		w.settle(f.RequestID, f.answer)
	case "welcome":
		w.settle("hello", answer{OK: true})
	case "error":
		w.settle("hello", answer{Message: f.Text})
	case "notify":
		_ = w.receipt(f.Envelope.ID, f.Envelope.Channel, f.Recipient)
		switch f.Envelope.Type {
		case "ag2.channel.invite":
			_ = w.request("-", "post_envelope", w.envelope(f.Envelope.Channel, f.Recipient, "ag2.channel.invite.ack", fmt.Appendf(nil, `{"channel_id":%q}`, f.Envelope.Channel)))
		case "ag2.msg.text":
			select {
			case w.said <- saying{f.Envelope.Sender, f.Envelope.Data}:
			default:
			}
		}
	}
}

func (w *ag2Wire) receipt(id, channel, recipient string) error {
	return w.Send(fmt.Appendf(nil, `{"kind":"receipt","envelope_id":%q,"status":"ack","recipient_id":%q,"channel_id":%q,"reason":""}`, id, recipient, channel))
}

func (w *ag2Wire) envelope(channel, sender, kind string, data []byte) map[string]any {
	return map[string]any{"envelope": map[string]any{"channel_id": channel, "sender_id": sender, "event_type": kind, "event_data": json.RawMessage(data)}}
}

func (w *ag2Wire) expect(id string) chan answer {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.waiting[id] = make(chan answer, 1)
	return w.waiting[id]
}

func (w *ag2Wire) settle(id string, a answer) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if waiting := w.waiting[id]; waiting != nil {
		delete(w.waiting, id)
		waiting <- a
	}
}

func (w *ag2Wire) await(result chan answer) (json.RawMessage, error) {
	select {
	case a := <-result:
		if !a.OK {
			return nil, errors.New(a.Message)
		}
		return a.Result, nil
	case <-w.gone:
		return nil, errors.New("the connection has ended")
	case <-time.After(dialecttest.Wait):
		return nil, errors.New("no answer came")
	}
}

func (w *ag2Wire) request(id, op string, params any) error {
	raw, err := json.Marshal(params)
	if err != nil {
		return err
	}
	return w.Send(fmt.Appendf(nil, `{"kind":"request","request_id":%q,"op":%q,"params":%s}`, id, op, raw))
}

func (w *ag2Wire) call(op string, params any) (json.RawMessage, error) {
	w.mu.Lock()
	w.next++
	id := fmt.Sprint(w.next)
	w.mu.Unlock()
	result := w.expect(id)
	if err := w.request(id, op, params); err != nil {
		return nil, err
	}
	return w.await(result)
}

func (w *ag2Wire) ID() string                         { return w.id }
func (w *ag2Wire) Say(room string, data []byte) error { return w.SayAs(room, w.id, data) }

func (w *ag2Wire) SayAs(room, sender string, data []byte) error {
	w.mu.Lock()
	w.next++
	id := fmt.Sprint(w.next)
	w.mu.Unlock()
	result := w.expect(id)
	// By hand, so that the data arrives as it is.
	err := w.Send(fmt.Appendf(nil, `{"kind":"request","request_id":%q,"op":"post_envelope","params":{"envelope":{"channel_id":%q,"sender_id":%q,"event_type":"ag2.msg.text","event_data":%s}}}`,
		id, room, sender, data))
	if err != nil {
		return err
	}
	_, err = w.await(result)
	return err
}

func (w *ag2Wire) Hear() (string, []byte, error) {
	select {
	case s := <-w.said:
		return s.sender, s.data, nil
	case <-w.gone:
		return "", nil, errors.New("the connection has ended")
	case <-time.After(dialecttest.Wait):
		return "", nil, errors.New("nothing was heard")
	}
}

func (w *ag2Wire) Read(room string) error {
	_, err := w.call("read_wal", map[string]any{"channel_id": room})
	return err
}

func (w *ag2Wire) Look(limit int64) (int, error) {
	result, err := w.call("list_agents", map[string]any{"limit": limit})
	if err != nil {
		return 0, err
	}
	var list []json.RawMessage
	err = json.Unmarshal(result, &list)
	return len(list), err
}

func (w *ag2Wire) Send(message []byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	_ = w.conn.SetWriteDeadline(time.Now().Add(dialecttest.Wait))
	return wsutil.WriteClientText(w.conn, message)
}

func (w *ag2Wire) Stall()                { w.once.Do(func() { close(w.stop) }) }
func (w *ag2Wire) Gone() <-chan struct{} { return w.gone }
func (w *ag2Wire) Close()                { _ = w.conn.Close() }
