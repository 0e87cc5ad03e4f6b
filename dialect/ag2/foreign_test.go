package ag2_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"

	"github.com/parley-hub/parley/adapter/branch"
	"github.com/parley-hub/parley/adapter/direct"
	"github.com/parley-hub/parley/adapter/room"
	"github.com/parley-hub/parley/adapter/thread"
	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/dialect/agh"
	"github.com/parley-hub/parley/dialect/hpd"
	"github.com/parley-hub/parley/server/access"
	"github.com/parley-hub/parley/server/api"
)

// dialects is a hub that serves HPD, AGH and the interface /v1 in addition to AG2.
type dialects struct {
	*rig
	hpd, agh, v1 http.Handler
}

func newDialects(t testing.TB, o options, config hpd.Config) *dialects {
	t.Helper()
	o.adapters = []channel.Adapter{
		branch.New(branch.Options{Record: 16 << 10}), room.New(room.Options{}), thread.New(thread.Options{}), direct.New(direct.Options{}),
	}
	d := &dialects{rig: newRig(t, o)}
	log := slog.New(slog.DiscardHandler)
	config.Hub, config.Log = d.rig.hub, log
	events, err := hpd.New(config)
	if err != nil {
		t.Fatal(err)
	}
	network, err := agh.New(agh.Config{Hub: d.rig.hub, Log: log, Who: func(r *http.Request) agh.Who {
		if name := r.Header.Get("X-As"); name != "" {
			return agh.Who{Role: agh.Agent, Agent: name}
		}
		return agh.Who{Role: agh.Operator}
	}})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []interface {
		Start(context.Context) error
		Drain(context.Context) error
		Close() error
	}{events, network} {
		if err := s.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			ctx, cancel := context.WithTimeout(context.Background(), wait)
			defer cancel()
			if err := s.Drain(ctx); err != nil {
				t.Error(err)
			}
			_ = s.Close()
		})
	}
	d.hpd, d.agh = events.Mount().Routes[0].Handler, network.Mount().Routes[0].Handler
	v1 := api.New(api.Config{Hub: d.rig.hub, Log: log})
	d.v1 = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		who := access.Principal{Role: access.Operator}
		if name := r.Header.Get("X-As"); name != "" {
			who = access.Principal{Role: access.Agent, Agent: name}
		}
		v1.ServeHTTP(w, r.WithContext(access.With(r.Context(), who)))
	})
	return d
}

// ask sends a request whose response must have a status.
func (d *dialects) ask(h http.Handler, status int, method, path string, body any) object {
	d.t.Helper()
	data, err := json.Marshal(body)
	if err != nil {
		d.t.Fatal(err)
	}
	req := httptest.NewRequest(method, path, bytes.NewReader(data))
	req.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, req)
	if w.Code != status {
		d.t.Fatalf("%s %s: %d %s; want %d", method, path, w.Code, w.Body, status)
	}
	out := object{}
	_ = json.Unmarshal(w.Body.Bytes(), &out)
	return out
}

const harbor = "/agh/workspaces/ws_harbor/network"

// join joins an agent to the room dock, and returns its session.
func (d *dialects) join(agent, peer string) string {
	d.t.Helper()
	a := d.ask(d.agh, http.StatusCreated, "POST", harbor+"/channels/dock/peers", object{"agent": agent, "peer_id": peer})
	return a["session_id"].(string)
}

// tell posts a text in the thread thread_tide.
func (d *dialects) tell(session, text string, more object) {
	d.t.Helper()
	body := object{"session_id": session, "channel": "dock", "kind": "say", "surface": "thread", "thread_id": "thread_tide", "body": object{"text": text}}
	maps.Copy(body, more)
	d.ask(d.agh, http.StatusOK, "POST", harbor+"/send", body)
}

// entry is an envelope in the form that AG2's client reads.
type entry struct {
	ID        string  `json:"envelope_id"`
	Sender    string  `json:"sender_id"`
	Type      string  `json:"event_type"`
	Data      object  `json:"event_data"`
	Causation *string `json:"causation_id"`
}

func (p *peer) wal(channelID string) []entry {
	p.t.Helper()
	var list []entry
	p.call("read_wal", object{"channel_id": channelID}, &list)
	return list
}

// said returns the texts of a log with their speakers.
func said(list []entry) []string {
	texts := []string{}
	for _, e := range list {
		if e.Type == "ag2.msg.text" {
			texts = append(texts, fmt.Sprintf("%s: %v", e.Sender, e.Data["text"]))
		}
	}
	return texts
}

func typesOf(list []entry) []string {
	types := []string{}
	for _, e := range list {
		types = append(types, e.Type)
	}
	return types
}

func (p *peer) canSend(channelID, agent string) bool {
	p.t.Helper()
	var can bool
	p.call("can_send", object{"channel_id": channelID, "sender_id": agent}, &can)
	return can
}

// shownChannel is a channel's metadata in the form that AG2's client reads.
type shownChannel struct {
	ID       string `json:"channel_id"`
	Manifest struct {
		Type string `json:"type"`
	} `json:"manifest"`
	Participants []struct {
		Agent string `json:"agent_id"`
		Role  string `json:"role"`
	} `json:"participants"`
	State string `json:"state"`
}

func (p *peer) pending(agent string) []string {
	p.t.Helper()
	var list []struct {
		Channel string `json:"channel_id"`
		Trigger string `json:"triggering_envelope_id"`
	}
	p.call("pending_turns_for", object{"agent_id": agent}, &list)
	out := []string{}
	for _, turn := range list {
		out = append(out, turn.Channel+" "+turn.Trigger)
	}
	return out
}

func TestForeignThread(t *testing.T) {
	t.Parallel()
	d := newDialects(t, options{}, hpd.Config{})
	p := d.dial()
	bob, carl := p.register("bob"), p.register("carl")
	tug := d.join("tug", "tug.s01")
	d.join("bob", "bob.s01")
	d.join("carl", "carl.s01")
	d.tell(tug, "to all", nil)

	// Both are invited before they receive the text, which asks neither.
	ids := map[string]string{}
	var threadID string
	for range 6 {
		n := p.notified()
		ids[n.Recipient] += " " + n.Envelope["event_type"].(string)
		threadID = n.Envelope["channel_id"].(string)
		if n.Envelope["event_type"] == "ag2.channel.invite" {
			p.ack(n)
		}
	}
	want := " ag2.channel.invite ag2.channel.opened ag2.msg.text"
	if ids[bob] != want || ids[carl] != want {
		t.Fatalf("told %v", ids)
	}
	if p.canSend(threadID, bob) || p.canSend(threadID, carl) || len(p.pending(bob)) > 0 {
		t.Error("a text that addresses nobody asks somebody to answer")
	}
	var m shownChannel
	p.call("get_channel", object{"channel_id": threadID}, &m)
	if m.Manifest.Type != "discussion" || len(m.Participants) != 3 || m.State != "active" {
		t.Errorf("shown as %+v", m)
	}

	// An identity that is addressed may answer, once.
	d.tell(tug, "bob?", object{"to": "bob.s01", "work_id": "work_1"})
	asked := p.notified()
	if asked.Recipient != bob || asked.Envelope["event_type"] != "ag2.msg.text" {
		t.Fatalf("told %v", asked)
	}
	trigger := asked.Envelope["envelope_id"].(string)
	if !p.canSend(threadID, bob) || p.canSend(threadID, carl) {
		t.Error("the addressed one may not answer, or another may")
	}
	if diff := cmp.Diff([]string{threadID + " " + trigger}, p.pending(bob)); diff != "" {
		t.Error(diff)
	}
	cause := object{"causation_id": trigger}
	first := p.post(threadID, bob, "ag2.msg.text", object{"text": "here"}, cause)
	again := p.post(threadID, bob, "ag2.msg.text", object{"text": "here, twice"}, cause)
	if first != again {
		t.Errorf("the same text is answered twice: %s and %s", first, again)
	}
	if p.canSend(threadID, bob) || len(p.pending(bob)) > 0 {
		t.Error("who has answered is asked still")
	}
	var answer entry
	p.call("find_envelope_by_causation", object{"channel_id": threadID, "sender_id": bob, "causation_id": trigger}, &answer)
	if answer.ID != first || answer.Data["text"] != "here" {
		t.Errorf("found %+v, not %s", answer, first)
	}
	p.quiet() // an answer under work is delivered to the asker only, and all can read it in the log
	if p.canSend(threadID, carl) {
		t.Error("an AG2 client's text asks another to answer: two would never stop")
	}
	log := p.wal(threadID)
	sender := log[3].Sender
	if diff := cmp.Diff([]string{sender + ": to all", sender + ": bob?", bob + ": here"}, said(log)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"ag2.channel.invite", "ag2.channel.invite.ack", "ag2.channel.opened"}, typesOf(log)[:3]); diff != "" {
		t.Error(diff)
	}
	if log[4].ID != trigger || log[5].ID != first {
		t.Errorf("notified ids %s and %s are not those of the log %v", trigger, first, log)
	}
	if !slices.IsSortedFunc(log, func(a, b entry) int { return strings.Compare(a.ID, b.ID) }) {
		t.Errorf("ids do not grow: %v", log)
	}
	for want, more := range map[string]object{
		"does not ask":           {"causation_id": log[3].ID},
		"leave out the audience": {"audience": []string{carl}},
		"not 'app.custom'":       {"event_type": "app.custom"},
	} {
		_, err := p.try("post_envelope", object{"envelope": env(threadID, bob, "ag2.msg.text", object{"text": "x"}, more)})
		if err == nil || !bytes.Contains([]byte(err.Error()), []byte(want)) {
			t.Errorf("%v: %v", more, err)
		}
	}
	if _, err := p.try("close_channel", object{"channel_id": threadID, "reason": ""}); err == nil {
		t.Error("a thread was closed")
	}
}

// A branch that an AG2 identity is a member of is a conversation of two.
func TestForeignBranch(t *testing.T) {
	t.Parallel()
	d := newDialects(t, options{}, hpd.Config{Producers: map[string]hpd.Producer{"echo": hpd.Echo{}}})
	p := d.dial()
	echo := p.register("echo")
	session := d.ask(d.hpd, http.StatusCreated, "POST", "/hpd/sessions", object{})["id"].(string)
	base := "/hpd/agents/echo/sessions/" + session + "/branches/main"
	input := func(text string) {
		d.ask(d.hpd, http.StatusAccepted, "POST", base+"/inputs", object{"type": "USER_TEXT_INPUT", "text": text})
	}
	input("good morning")
	var texts []notice
	for len(texts) < 1 {
		if n := p.notified(); n.Envelope["event_type"] == "ag2.msg.text" {
			texts = append(texts, n)
		}
	}
	id := texts[0].Envelope["channel_id"].(string)
	var m shownChannel
	p.call("get_channel", object{"channel_id": id}, &m)
	if m.Manifest.Type != "conversation" || len(m.Participants) != 2 || m.Participants[0].Role != "initiator" || m.Participants[1].Role != "respondent" {
		t.Errorf("shown as %+v", m)
	}
	var listed []shownChannel
	p.call("list_channels", object{"agent_id": echo}, &listed)
	if len(listed) != 1 || listed[0].ID != id || listed[0].Manifest.Type != "conversation" {
		t.Errorf("listed %+v", listed)
	}
	user := m.Participants[0].Agent
	want := []string{user + ": good morning", echo + ": good morning"}
	until(t, "the answer is in the log", func() bool { return slices.Equal(said(p.wal(id)), want) })
	log := p.wal(id)
	if !slices.ContainsFunc(log, func(e entry) bool { return e.ID == texts[0].Envelope["envelope_id"] && e.Type == "ag2.msg.text" }) {
		t.Errorf("told %v, and the log is %v", texts[0], log)
	}
	until(t, "the run has ended, so nobody is asked", func() bool { return !p.canSend(id, echo) && len(p.pending(echo)) == 0 })

	// Slices of the log are slices of the shown envelopes.
	whole := p.wal(id)
	for _, cut := range [][2]any{{0, nil}, {2, nil}, {1, 4}, {-2, nil}, {-3, -1}, {100, nil}} {
		var got []entry
		p.call("read_wal", object{"channel_id": id, "since": cut[0], "until": cut[1]}, &got)
		if diff := cmp.Diff(typesOf(pySlice(whole, cut[0].(int), cut[1])), typesOf(got)); diff != "" {
			t.Errorf("%v: %s", cut, diff)
		}
	}

	// Unacked envelopes are delivered again, acked ones are not.
	last := whole[len(whole)-1].ID
	p.send(fmt.Sprintf(`{"kind":"receipt","envelope_id":%q,"status":"ack","recipient_id":%q,"channel_id":%q,"reason":""}`, last, echo, id))
	until(t, "the receipt counts", func() bool {
		at, err := d.rig.hub.Cursor(t.Context(), echo, id)
		return err == nil && at == last
	})
	p.hangUp()
	input("good night")
	q := d.dial()
	q.hello("echo", "")
	n := q.notifiedOf("ag2.msg.text")
	if n.Envelope["event_data"].(object)["text"] != "good night" {
		t.Errorf("replayed %v", n)
	}
}

// pySlice returns Python's list[since:until].
func pySlice(list []entry, since int, until any) []entry {
	at := func(i int) int {
		if i < 0 {
			i += len(list)
		}
		return min(max(i, 0), len(list))
	}
	to := len(list)
	if until != nil {
		to = at(until.(int))
	}
	if from := at(since); from < to {
		return list[from:to]
	}
	return nil
}

// What an identity may not see in a channel is not shown through AG2 either: the
// channel itself is hidden from non-members, and a direct room from a third peer.
func TestForeignIsHiddenFromOthers(t *testing.T) {
	t.Parallel()
	d := newDialects(t, options{}, hpd.Config{})
	p, q := d.dial(), d.dial()
	bob, eve := p.register("bob"), q.register("eve")
	tug := d.join("tug", "tug.s01")
	d.join("bob", "bob.s01")
	d.join("eve", "eve.s01")
	d.tell(tug, "between us", object{"surface": "direct", "thread_id": nil, "direct_id": "direct_" + strings.Repeat("0", 32), "to": "bob.s01"})
	n := p.notifiedOf("ag2.msg.text")
	id := n.Envelope["channel_id"].(string)
	var m shownChannel
	p.call("get_channel", object{"channel_id": id}, &m)
	if m.Manifest.Type != "conversation" || !p.canSend(id, bob) {
		t.Errorf("shown as %+v", m)
	}
	p.say(id, bob, "only us")
	if got := said(p.wal(id)); len(got) != 2 || got[1] != bob+": only us" {
		t.Errorf("the direct room has %v", got)
	}
	q.quiet()
	for op, params := range map[string]object{
		"get_channel": {"channel_id": id}, "read_wal": {"channel_id": id},
		"can_send":                   {"channel_id": id, "sender_id": eve},
		"find_envelope_by_causation": {"channel_id": id, "sender_id": bob, "causation_id": "x"},
		"post_envelope":              {"envelope": env(id, eve, "ag2.msg.text", object{"text": "hi"})},
	} {
		var refused *failure
		if _, err := q.try(op, params); !errors.As(err, &refused) || refused.Code != "access_denied" {
			t.Errorf("%s: %v", op, err)
		}
	}
	var listed []shownChannel
	q.call("list_channels", object{}, &listed)
	for _, m := range listed {
		if m.ID == id {
			t.Error("a direct room is listed for a third peer")
		}
	}
	if got := q.pending(eve); len(got) > 0 {
		t.Errorf("eve has turns %v", got)
	}
}
