package ag2_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"pgregory.net/rapid"

	"github.com/parley-hub/parley/adapter/direct"
	"github.com/parley-hub/parley/adapter/thread"
	"github.com/parley-hub/parley/dialect/hpd"
	"github.com/parley-hub/parley/hub"
)

// homes draws channels in homes, and their readers.
type homes struct {
	*dialects
	r       *rapid.T
	clients map[string]*peer // over AG2, by name
	ids     map[string]string
	poet    *peer
	rooms   *int // how many were made
}

// drawn is a channel with its texts and its readers.
type drawn struct {
	id, session string   // session is HPD's name of the channel
	readers     []string // names
	texts       []string
	overAGH     string // the path of its messages; empty: AGH has none
}

// as sends a request as an identity.
func (d *dialects) as(h http.Handler, name, method, path, body string) *httptest.ResponseRecorder {
	req := httptest.NewRequest(method, path, strings.NewReader(body))
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-As", name)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, req)
	return w
}

// conversation draws a thread, or a direct room, in a room with some members.
func (h *homes) conversation(kind string) *drawn {
	*h.rooms++
	room := fmt.Sprintf("dock%d", *h.rooms)
	names := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"ada", "bob", "eve"}), 2, 3, rapid.ID).Draw(h.r, "joined")
	sessions := map[string]string{}
	for _, name := range names {
		a := h.ask(h.agh, http.StatusCreated, "POST", harbor+"/channels/"+room+"/peers", object{"agent": name, "peer_id": name + "." + room})
		sessions[name] = a["session_id"].(string)
	}
	c := &drawn{readers: names, overAGH: "/threads/thread_tide/messages"}
	if kind == direct.Type {
		c.readers = names[:2]
	}
	for n := range rapid.IntRange(1, 6).Draw(h.r, "texts") {
		text := fmt.Sprintf("%s %d", room, n)
		from := rapid.SampledFrom(c.readers).Draw(h.r, "speaker")
		way := "AGH"
		if n > 0 { // the first text opens it
			way = rapid.SampledFrom([]string{"AGH", "AG2", "HPD", "/v1"}).Draw(h.r, "way")
		}
		switch way {
		case "AGH":
			more := object{"channel": room}
			to := ""
			for _, other := range c.readers {
				if other != from {
					to = other + "." + room
				}
			}
			if kind == direct.Type {
				more["surface"], more["thread_id"], more["to"] = "direct", nil, to
			} else if rapid.Bool().Draw(h.r, "directed") { // this hides nothing
				more["to"] = to
			}
			h.tell(sessions[from], text, more)
		case "AG2":
			h.clients[from].say(c.id, h.ids[from], text)
		case "HPD":
			w := h.as(h.hpd, from, "POST", "/hpd/agents/any/sessions/"+c.id+"/branches/main/inputs", fmt.Sprintf(`{"type":"USER_TEXT_INPUT","text":%q}`, text))
			if w.Code != http.StatusAccepted {
				h.r.Fatalf("%s says %q over HPD: %d %s", from, text, w.Code, w.Body)
			}
		}
		if way == "/v1" {
			h.ask(h.v1, http.StatusCreated, "POST", "/v1/channels/"+c.id+"/events", object{"sender": from, "text": text})
		}
		c.texts = append(c.texts, text)
		if n == 0 {
			list, _, err := h.rig.hub.Channels(h.t.Context(), hub.ListOptions{Type: kind, Newest: true, Limit: 1})
			if err != nil || len(list) != 1 {
				h.r.Fatalf("%v, %v", list, err)
			}
			c.id, c.session = list[0].ID, list[0].ID
			if kind == direct.Type {
				c.overAGH = "/directs/" + list[0].Name + "/messages"
			}
		}
	}
	c.overAGH = harbor + "/channels/" + room + c.overAGH
	return c
}

// branch draws a session of an identity with an agent that answers over AG2.
func (h *homes) branch() *drawn {
	owner := rapid.SampledFrom([]string{"ada", "bob", "eve"}).Draw(h.r, "owner")
	var made object
	if w := h.as(h.hpd, owner, "POST", "/hpd/sessions", "{}"); w.Code != http.StatusCreated || json.Unmarshal(w.Body.Bytes(), &made) != nil {
		h.r.Fatalf("%d %s", w.Code, w.Body)
	}
	c := &drawn{session: made["id"].(string), readers: []string{owner, "poet"}}
	b := &branchOf{h.dialects, c.session, "/hpd/agents/poet/sessions/" + c.session + "/branches/main"}
	for n := range rapid.IntRange(1, 3).Draw(h.r, "runs") {
		text := fmt.Sprintf("%s %d", c.session, n)
		var run object
		w := h.as(h.hpd, owner, "POST", b.base+"/inputs", fmt.Sprintf(`{"type":"USER_TEXT_INPUT","text":%q}`, text))
		if w.Code != http.StatusAccepted || json.Unmarshal(w.Body.Bytes(), &run) != nil {
			h.r.Fatalf("%d %s", w.Code, w.Body)
		}
		if n == 0 {
			h.poet.ack(h.poet.notifiedOf("ag2.channel.invite"))
		}
		asked := h.poet.notifiedOf("ag2.msg.text")
		c.id = asked.Envelope["channel_id"].(string)
		h.poet.post(c.id, h.ids["poet"], "ag2.msg.text", object{"text": "re: " + text}, object{"causation_id": asked.Envelope["envelope_id"]})
		b.ended(run["runtimeRunId"].(string))
		c.texts = append(c.texts, text, "re: "+text)
	}
	return c
}

// A channel in a home is read only by those who may, over every dialect: a
// thread by its joined peers, a direct room by its two peers, a branch by the
// creator of its session and by its agent.
func TestNobodySeesMoreInHomes(t *testing.T) {
	t.Parallel()
	d := newDialects(t, options{}, hpd.Config{Who: asNamed})
	clients, ids := map[string]*peer{}, map[string]string{}
	for _, name := range []string{"ada", "bob", "eve", "poet", "mallory"} {
		clients[name] = d.dial()
		ids[name] = clients[name].register(name)
	}
	rooms := 0
	rapid.Check(t, func(r *rapid.T) {
		h := &homes{d, r, clients, ids, clients["poet"], &rooms}
		var c *drawn
		kind := rapid.SampledFrom([]string{thread.Type, direct.Type, "branch"}).Draw(r, "kind")
		if kind == "branch" {
			c = h.branch()
		} else {
			c = h.conversation(kind)
		}
		for name, p := range clients {
			may := slices.Contains(c.readers, name)
			check := func(how string, shown bool, texts []string) {
				switch {
				case may != shown:
					r.Errorf("%s may read the %s: %v; over %s: %v", name, kind, may, how, shown)
				case may && !slices.Equal(texts, c.texts):
					r.Errorf("%s over %s: %q; said was %q", name, how, texts, c.texts)
				case !may && len(texts) > 0:
					r.Errorf("%s over %s: %q", name, how, texts)
				}
			}
			check(h.overAG2(name, c.id))
			status, texts := d.eventsAs(name, c.session)
			check("HPD", status == http.StatusOK, texts)
			shown, texts := d.messagesAs(name, c.id)
			check("/v1", shown, texts)
			last := c.texts[len(c.texts)-1]
			for how, follow := range map[string]func() (bool, string){
				"/v1": func() (bool, string) { return d.streamAs(name, c.id, "", last) },
				"HPD": func() (bool, string) { return d.eventStreamAs(name, c.session, last) },
			} {
				if shown, stream := follow(); shown != may || !may && strings.Contains(stream, c.texts[0]) {
					r.Errorf("%s may read the %s: %v; a stream of %s: %v", name, kind, may, how, shown)
				}
			}
			if c.overAGH != "" && name != "poet" && name != "mallory" { // they have joined nothing
				check(h.overAGH(name, c))
			}
			var listed []shownChannel
			p.call("list_channels", object{"agent_id": ids[name]}, &listed)
			if got := slices.ContainsFunc(listed, func(m shownChannel) bool { return m.ID == c.id }); got && !may {
				r.Errorf("%s is listed the %s over AG2", name, kind)
			}
			if w := d.as(d.v1, name, "GET", "/v1/channels?limit=1000", ""); w.Code != http.StatusOK || !may && strings.Contains(w.Body.String(), c.id) {
				r.Errorf("%s is listed the %s over /v1: %d", name, kind, w.Code)
			}
			if w := d.as(d.hpd, name, "GET", "/hpd/sessions?foreign=true", ""); !may && strings.Contains(w.Body.String(), c.session) {
				r.Errorf("%s is listed the %s over HPD: %d", name, kind, w.Code)
			}
		}
	})
}

// overAG2 returns the texts of a channel as an identity reads it over AG2.
func (h *homes) overAG2(name, id string) (how string, shown bool, texts []string) {
	raw, err := h.clients[name].try("read_wal", object{"channel_id": id})
	if err != nil {
		return "AG2", false, nil
	}
	var list []entry
	if err := json.Unmarshal(raw, &list); err != nil {
		h.r.Fatal(err)
	}
	for _, e := range list {
		if e.Type == "ag2.msg.text" {
			texts = append(texts, e.Data["text"].(string))
		}
	}
	return "AG2", true, texts
}

// overAGH returns the texts of a conversation as an identity reads it over AGH. AGH
// orders them by the senders' clocks; they are sorted into the order of the log.
func (h *homes) overAGH(name string, c *drawn) (how string, shown bool, texts []string) {
	w := h.as(h.agh, name, "GET", c.overAGH, "")
	if w.Code != http.StatusOK {
		return "AGH", false, nil
	}
	var page struct {
		Messages []struct {
			Body object `json:"body"`
		} `json:"messages"`
	}
	if err := json.Unmarshal(w.Body.Bytes(), &page); err != nil {
		h.r.Fatal(err)
	}
	for _, m := range page.Messages {
		texts = append(texts, fmt.Sprint(m.Body["text"]))
	}
	slices.Sort(texts)
	return "AGH", true, texts
}
