package agh

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/parley-hub/parley/interop/agh/peer"
)

const (
	workspace = "ws_harbor"
	channel   = "dock"
	base      = "/agh/workspaces/" + workspace + "/network"
)

type obj = map[string]any

// hub asks a running hub.
type hub struct {
	*testing.T
	*hubProcess
	natsURL, token string
}

// overBoth runs a test over a NATS server of its own process, and over the
// hub's.
func overBoth(t *testing.T, test func(h *hub)) {
	t.Helper()
	t.Run("over a NATS server", func(t *testing.T) {
		t.Parallel()
		test(overServer(t, startNATS(t)))
	})
	t.Run("over the hub's own", func(t *testing.T) {
		t.Parallel()
		p := startHub(t, "--nats", "127.0.0.1:0")
		url, token := p.broker(t)
		test(&hub{t, p, url, token})
	})
}

func overServer(t *testing.T, s *natsServer) *hub {
	t.Helper()
	return &hub{t, startHub(t, "--nats-url", "nats://"+natsToken+"@"+s.address), "nats://" + s.address, natsToken}
}

// peer joins a peer that is not the hub's.
func (h *hub) peer(id string) *peer.Peer {
	h.Helper()
	return h.joinPeer(peer.Options{ID: id})
}

func (h *hub) joinPeer(o peer.Options) *peer.Peer {
	h.Helper()
	o.URL, o.Token, o.Workspace, o.Channel = h.natsURL, h.token, workspace, channel
	p, err := peer.Join(o)
	if err != nil {
		h.Fatal(err)
	}
	h.Cleanup(p.Leave)
	return p
}

// try makes a request and returns its status and answer.
func (h *hub) try(method, path string, body any) (int, obj) {
	h.Helper()
	var payload io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			h.Fatal(err)
		}
		payload = bytes.NewReader(text)
	}
	if !strings.HasPrefix(path, "/") {
		path = base + "/" + path
	}
	request, err := http.NewRequest(method, h.url+path, payload)
	if err != nil {
		h.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		h.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		h.Fatal(err)
	}
	var found obj
	if len(text) > 0 {
		if err := json.Unmarshal(text, &found); err != nil {
			h.Fatalf("%v: %s", err, text)
		}
	}
	return answer.StatusCode, found
}

// ask makes a request that must have a status.
func (h *hub) ask(status int, method, path string, body any) obj {
	h.Helper()
	got, answer := h.try(method, path, body)
	if got != status {
		h.Fatalf("%s %s: %d %v; want %d", method, path, got, answer, status)
	}
	return answer
}

func (h *hub) status() obj { return h.ask(200, "GET", "/agh/network/status", nil)["network"].(obj) }

func (h *hub) work(id string) string {
	h.Helper()
	return h.ask(200, "GET", "work/"+id, nil)["work"].(obj)["state"].(string)
}

// messages are those of a thread or direct room, by their ids.
func (h *hub) messages(container string) []string {
	h.Helper()
	ids := []string{}
	for _, m := range h.ask(200, "GET", "channels/"+channel+"/"+container+"/messages", nil)["messages"].([]any) {
		ids = append(ids, m.(obj)["message_id"].(string))
	}
	return ids
}

func (h *hub) message(container, id string) obj {
	h.Helper()
	for _, m := range h.ask(200, "GET", "channels/"+channel+"/"+container+"/messages", nil)["messages"].([]any) {
		if m.(obj)["message_id"] == id {
			return m.(obj)
		}
	}
	h.Fatalf("%s has no message %s", container, id)
	return nil
}

// sees waits until the hub lists a remote peer as there, or as gone.
func (h *hub) sees(id string, there bool) {
	h.Helper()
	eventually(h.T, id+" is seen, or not", func() bool {
		return there == slices.ContainsFunc(h.ask(200, "GET", "peers", nil)["peers"].([]any), func(p any) bool { return p.(obj)["peer_id"] == id })
	})
}

// rejected counts the hub's records of rejections for a reason.
func (h *hub) rejected(reason string) int {
	h.Helper()
	request, err := http.NewRequest(http.MethodGet, h.url+"/v1/audit?limit=1000", nil)
	if err != nil {
		h.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		h.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		h.Fatal(err)
	}
	return bytes.Count(text, []byte(`"reason":"`+reason+`"`))
}

// hosted is a peer of the hub.
type hosted struct {
	h           *hub
	session, id string
}

func (h *hub) join(agent, id string) *hosted {
	h.Helper()
	a := h.ask(201, "POST", "channels/"+channel+"/peers", obj{"agent": agent, "peer_id": id})
	return &hosted{h, a["session_id"].(string), id}
}

// send sends members over those of a say.
func (p *hosted) send(status int, members obj) string {
	p.h.Helper()
	body := obj{"session_id": p.session, "channel": channel, "kind": "say", "body": obj{"text": "hello"}}
	for name, value := range members {
		body[name] = value
	}
	answer := p.h.ask(status, "POST", "send", body)
	if status != 200 {
		return ""
	}
	return answer["message"].(obj)["id"].(string)
}

// take waits for the oldest message in the inbox, and finishes it.
func (p *hosted) take() peer.Envelope {
	p.h.Helper()
	for until := time.Now().Add(patience); time.Now().Before(until); {
		list := p.h.ask(200, "GET", "inbox?wait=10s&session_id="+p.session, nil)["messages"].([]any)
		if len(list) > 0 {
			e := peer.Envelope(list[0].(obj))
			p.h.ask(204, "POST", "inbox/"+e.Text("id")+"/done?session_id="+p.session, nil)
			return e
		}
	}
	p.h.Fatalf("%s never got a message", p.id)
	return nil
}

// takes is take for a message that must have an id.
func (p *hosted) takes(id string) peer.Envelope {
	p.h.Helper()
	e := p.take()
	if e.Text("id") != id {
		p.h.Fatalf("%s got %v; want %s", p.id, e, id)
	}
	return e
}

// inbox are the ids that wait.
func (p *hosted) inbox() []string {
	p.h.Helper()
	ids := []string{}
	for _, m := range p.h.ask(200, "GET", "inbox?session_id="+p.session, nil)["messages"].([]any) {
		ids = append(ids, m.(obj)["id"].(string))
	}
	return ids
}

// say publishes what a peer that is not the hub's says.
func say(t *testing.T, p *peer.Peer, members peer.Envelope) peer.Envelope {
	t.Helper()
	e := peer.Envelope{"kind": "say", "surface": "thread", "thread_id": "thread_tide", "body": obj{"text": "hello"}}
	sent, err := p.Send(e.With(members))
	if err != nil {
		t.Fatal(err)
	}
	return sent
}

// hear waits until a peer heard something.
func hear(t *testing.T, p *peer.Peer, what string, fits func(peer.Envelope) bool) peer.Envelope {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	e, err := p.Await(ctx, what, fits)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func withID(id string) func(peer.Envelope) bool {
	return func(e peer.Envelope) bool { return e.Text("id") == id }
}

// answerTo is the receipt for a message.
func answerTo(id string) func(peer.Envelope) bool {
	return func(e peer.Envelope) bool { return e.Text("kind") == "receipt" && e.Body("for_id") == id }
}
