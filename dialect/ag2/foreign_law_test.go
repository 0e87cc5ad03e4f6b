package ag2_test

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"pgregory.net/rapid"

	"github.com/parley-hub/parley/dialect/hpd"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/hub"
)

// asNamed returns the caller of HPD from a header; without one it is an operator.
func asNamed(r *http.Request) hpd.Who {
	if name := r.Header.Get("X-As"); name != "" {
		return hpd.Who{Role: hpd.Agent, Agent: name}
	}
	return hpd.Who{Role: hpd.Operator}
}

// eventsAs returns a channel's events as an identity reads them over HPD.
func (d *dialects) eventsAs(name, channelID string) (status int, texts []string) {
	d.t.Helper()
	req := httptest.NewRequest(http.MethodGet, "/hpd/sessions/"+channelID+"/branches/main/events", nil)
	req.Header.Set("X-As", name)
	w := httptest.NewRecorder()
	d.hpd.ServeHTTP(w, req)
	var list []object
	if w.Code == http.StatusOK {
		if err := json.Unmarshal(w.Body.Bytes(), &list); err != nil {
			d.t.Fatal(err)
		}
	}
	for _, e := range list {
		if e["type"] == "TEXT_DELTA" {
			texts = append(texts, e["text"].(string))
		}
	}
	return w.Code, texts
}

// inbox returns the texts about a channel that a hosted AGH peer receives.
func (d *dialects) inbox(session, channelID string) (texts []string) {
	d.t.Helper()
	for _, one := range d.ask(d.agh, http.StatusOK, "GET", harbor+"/inbox?session_id="+session, nil)["messages"].([]any) {
		m := one.(object)
		ext, _ := m["ext"].(object)
		of, _ := ext["parley.channel"].(object)
		body := m["body"].(object)
		if of["id"] == channelID && body["intent"] != "invitation" {
			texts = append(texts, body["text"].(string))
			d.ask(d.agh, http.StatusNoContent, "POST", harbor+"/inbox/"+m["id"].(string)+"/done?session_id="+session, nil)
		}
	}
	return texts
}

// lawChannel is a channel that ada opens.
type lawChannel struct {
	kind   string
	with   []string
	knobs  string
	inTurn bool // the participants take turns
}

// What an identity may not see in a channel is shown through no dialect, and what
// it may see is shown in order, whatever the audience.
func TestNobodySeesMore(t *testing.T) {
	t.Parallel()
	d := newDialects(t, options{}, hpd.Config{Who: asNamed})
	own, p, q := d.dial(), d.dial(), d.dial()
	ada, bob, eve := own.register("ada"), p.register("bob"), q.register("eve")
	tug := d.join("tug", "tug.s01")
	const tugName = "agh/ws_harbor/tug.s01"
	channels := 0
	rapid.Check(t, func(r *rapid.T) {
		kind := rapid.SampledFrom([]lawChannel{
			{kind: "workflow", with: []string{bob, tugName}, knobs: `{"graph":{"initial_speaker":"ada","transitions":[{"when":{"name":"always","args":{}},"then":{"name":"stay","args":{}}}]}}`},
			{kind: "conversation", with: []string{bob}},
			{kind: "conversation", with: []string{tugName}},
			{kind: "discussion", with: []string{bob}, inTurn: true},
		}).Draw(r, "channel")
		channels++
		law := strconv.Itoa(channels)
		o, err := d.rig.hub.WithIDs(hub.Opening{
			Creator: ada, Type: kind.kind, Participants: kind.with, RequiredAcks: new(int), Knobs: []byte(kind.knobs), Labels: map[string]string{"law": law},
		})
		if err != nil {
			r.Fatal(err)
		}
		opened, err := d.rig.hub.Open(t.Context(), o)
		if err != nil {
			r.Fatal(err)
		}
		id := opened.ID
		peer, _ := d.rig.hub.FindAgent(tugName)
		var members []string
		for _, one := range opened.Participants {
			members = append(members, one.Agent)
		}
		may := map[string][]string{}
		told := func(n int) string { return fmt.Sprintf("text %d of %s", n, id) }
		said := rapid.IntRange(1, 8).Draw(r, "texts")
		for n := range said {
			text := told(n)
			e := &envelope.Envelope{Channel: id, Sender: ada, Type: envelope.TypeText, Data: fmt.Appendf(nil, `{"text":%q}`, text)}
			if kind.inTurn {
				e.Sender = members[n%len(members)]
			} else if kind.kind == "conversation" && members[1] == bob {
				e.Sender = rapid.SampledFrom(members).Draw(r, "sender")
			}
			if rapid.Bool().Draw(r, "whispered") {
				e.Audience = rapid.SliceOfNDistinct(rapid.SampledFrom(members), 1, len(members), rapid.ID).Draw(r, "audience")
			}
			if _, err := d.rig.hub.Post(t.Context(), e, nil); err != nil {
				r.Fatal(err)
			}
			for _, reader := range members {
				if reader == e.Sender || e.VisibleTo(reader) {
					may[reader] = append(may[reader], text)
				}
			}
		}
		equal := func(what string, got, want []string) {
			if !slices.Equal(got, want) {
				r.Errorf("%s: %q; may see %q", what, got, want)
			}
		}
		for name, reader := range map[string]string{"ada": ada, "bob": bob, "eve": eve} {
			status, texts := d.eventsAs(name, id)
			if in := slices.Contains(members, reader); in != (status == http.StatusOK) {
				r.Errorf("%s takes part: %v; reading over HPD is answered with %d", name, in, status)
			}
			equal(name+" over HPD", texts, may[reader])
			shown, texts := d.messagesAs(name, id)
			if in := slices.Contains(members, reader); in != shown {
				r.Errorf("%s takes part: %v; reads messages over /v1: %v", name, in, shown)
			}
			equal(name+" over /v1", texts, may[reader])
			everywhere, err := d.everywhereAs(name, id, law, slices.Contains(members, reader))
			if err != nil {
				r.Error(err)
			}
			for n := range said {
				if text := told(n); !slices.Contains(may[reader], text) && strings.Contains(everywhere, text) {
					r.Errorf("%s may not see %q; /v1 shows %s", name, text, everywhere)
				}
			}
			if len(may[reader]) == 0 {
				continue // an empty stream has no end
			}
			last := may[reader][len(may[reader])-1]
			_, overV1 := d.streamAs(name, id, "?as="+name, last)
			_, overHPD := d.eventStreamAs(name, id, last)
			for n := range said {
				text := told(n)
				for how, stream := range map[string]string{"/v1": overV1, "HPD": overHPD} {
					if sees := slices.Contains(may[reader], text); sees != strings.Contains(stream, strconv.Quote(text)) {
						r.Errorf("%s may see %q: %v; a stream of %s shows %s", name, text, sees, how, stream)
					}
				}
			}
		}
		var heard []string
		until(t, "the AGH peer is told", func() bool {
			heard = append(heard, d.inbox(tug, id)...)
			return len(heard) >= len(may[peer])
		})
		equal("tug over AGH", heard, may[peer])

		if slices.Contains(members, bob) {
			var read []string
			for _, e := range p.wal(id) {
				if text, _ := e.Data["text"].(string); e.Type == envelope.TypeText && text != "" {
					read = append(read, text)
				}
			}
			equal("bob over AG2", read, may[bob])
		} else if _, err := p.try("read_wal", object{"channel_id": id}); err == nil {
			r.Error("bob reads a log of others over AG2")
		}
		if _, err := q.try("read_wal", object{"channel_id": id}); err == nil {
			r.Error("eve reads the log over AG2")
		}
		var listed []shownChannel
		q.call("list_channels", object{"agent_id": eve}, &listed)
		if slices.ContainsFunc(listed, func(m shownChannel) bool { return m.ID == id }) {
			r.Error("eve is listed the channel over AG2")
		}

		// A direct room of AGH is for its two peers, over every dialect.
		words := "between us " + id
		d.tell(tug, words, object{"surface": "direct", "thread_id": nil, "direct_id": "direct_" + strings.Repeat("0", 32), "to": d.spokenBy("bob")})
		var rooms []shownChannel
		q.call("list_channels", object{"agent_id": eve}, &rooms)
		for _, m := range rooms {
			if raw, err := q.try("read_wal", object{"channel_id": m.ID}); err == nil && bytes.Contains(raw, []byte(words)) {
				r.Errorf("eve reads what is said between two in %s", m.ID)
			}
		}
	})
}

// spokenBy joins an identity to the room dock, once, and returns its peer.
func (d *dialects) spokenBy(name string) string {
	d.t.Helper()
	peer := name + ".s01"
	for _, one := range d.ask(d.agh, http.StatusOK, "GET", harbor+"/peers", nil)["peers"].([]any) {
		if one.(object)["peer_id"] == peer {
			return peer
		}
	}
	d.join(name, peer)
	return peer
}
