package api_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/parley-hub/parley/server/access"
	"github.com/parley-hub/parley/server/api"
)

func watchPath(topics ...string) string {
	return "/v1/watch?" + url.Values{"topic": topics}.Encode()
}

// until reads a watch up to an event of a name, and decodes it.
func (f *frames) until(name string) (frame, map[string]any) {
	f.t.Helper()
	for {
		ev := f.next()
		if ev.name == name {
			var data map[string]any
			if err := json.Unmarshal([]byte(ev.data), &data); err != nil {
				f.t.Fatalf("%s: %v", ev.data, err)
			}
			return ev, data
		}
	}
}

func TestAWatchTellsEveryEventAndResumes(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.agent("alice")
	s.agent("bob")
	one, two := s.open("conversation", "alice", "bob"), s.open("conversation", "bob", "alice")
	_, shown := s.ask(operator, "GET", "/v1/channels/"+one, "")
	from := shown["position"].(string)
	s.tell(one, "alice", "before")
	path := watchPath("channel:"+one+"@"+from, "channel:"+two, "requests", "audit")
	f := s.follow(operator, path)
	_, hello := f.until("hello")
	if hello["watch"] == "" || hello["epoch"] == "" || hello["keep_alive"] == 0.0 || hello["now"] == nil {
		t.Errorf("hello: %v", hello)
	}
	first, data := f.until("envelope")
	if data["topic"] != "channel:"+one || data["event_data"].(map[string]any)["text"] != "before" || first.id == "" || len(first.id) > 4<<10 {
		t.Errorf("the first: %v", data)
	}
	s.tell(two, "bob", "in two")
	mark, data := f.until("envelope")
	if data["topic"] != "channel:"+two {
		t.Errorf("the second: %v", data)
	}
	_ = f.body.Close()
	s.tell(one, "alice", "missed in one")
	s.tell(two, "bob", "missed in two")
	s.ask(operator, "POST", "/v1/channels/"+one+"/requests", `{"asked_by":"alice","kind":"approval","title":"Missed?"}`)
	f = s.follow(operator, path, "Last-Event-ID", mark.id)
	defer f.body.Close()
	got := map[string]int{}
	for len(got) < 3 {
		ev := f.next()
		var data map[string]any
		if err := json.Unmarshal([]byte(ev.data), &data); err != nil {
			t.Fatal(err)
		}
		switch ev.name {
		case "envelope":
			if data["event_type"] == "ag2.msg.text" {
				got[data["event_data"].(map[string]any)["text"].(string)]++
			}
		case "request":
			got[data["title"].(string)]++
		}
	}
	for _, want := range []string{"missed in one", "missed in two", "Missed?"} {
		if got[want] != 1 {
			t.Errorf("resumed: %v", got)
		}
	}
}

func TestConflatedTopicsTellTheNewest(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	alice := s.agent("alice")
	s.agent("bob")
	one, two := s.open("conversation", "alice", "bob"), s.open("conversation", "alice", "bob")
	f := s.follow(operator, watchPath("summary", "rows:"+one))
	defer f.body.Close()
	_, hello := f.until("hello")
	if _, sum := f.until("summary"); sum["topic"] != "summary" || sum["channels"].(map[string]any)["active"] != 2.0 {
		t.Errorf("summary: %v", sum)
	}
	if _, row := f.until("row"); row["topic"] != "rows" || row["channel_id"] != one {
		t.Errorf("a watch begins with what is: %v", row)
	}
	for i := range 50 {
		s.tell(one, "alice", fmt.Sprintf("word %d", i))
	}
	rows := 0
	for {
		_, row := f.until("row")
		if rows++; row["last"].(map[string]any)["text"] == "word 49" {
			break
		}
	}
	if rows > 45 {
		t.Errorf("%d rows for 50 events", rows)
	}
	watch := "/v1/watch/" + hello["watch"].(string)
	if status, body := s.ask(operator, "PUT", watch, fmt.Sprintf(`{"topics":["rows:%s","agents:%s"]}`, two, alice)); status != http.StatusNoContent {
		t.Fatalf("changing: %d %v", status, body)
	}
	if _, row := f.until("row"); row["channel_id"] != two {
		t.Errorf("after the change: %v", row)
	}
	if _, agent := f.until("agent"); agent["topic"] != "agents" || agent["passport"].(map[string]any)["agent_id"] != alice {
		t.Errorf("agent: %v", agent)
	}
	s.tell(one, "alice", "nobody watches")
	s.tell(two, "alice", "somebody watches")
	if _, row := f.until("row"); row["channel_id"] != two || row["last"].(map[string]any)["text"] != "somebody watches" {
		t.Errorf("a row: %v", row)
	}
	if status, _ := s.ask("agent:alice", "PUT", watch, `{"topics":[]}`); status != http.StatusNotFound {
		t.Errorf("another's watch: %d", status)
	}
	if status, _ := s.ask(operator, "PUT", watch, `{"topics":["audit"]}`); status != http.StatusBadRequest {
		t.Errorf("an exact topic: %d", status)
	}
}

func TestWatchesAreHeldToWhatTheCallerSees(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.agent("alice")
	s.agent("bob")
	carol := s.agent("carol")
	ch := s.open("conversation", "alice", "bob")
	for topic, want := range map[string]int{
		"channel:" + ch: http.StatusForbidden, "audit": http.StatusForbidden, "stats": http.StatusForbidden,
		"channel:" + strings.Repeat("0", 32): http.StatusNotFound, "rows": http.StatusBadRequest, "nonsense": http.StatusBadRequest, "channel:x": http.StatusBadRequest,
	} {
		if status, body := s.ask("agent:carol", "GET", watchPath(topic), ""); status != want {
			t.Errorf("%s: %d %v, want %d", topic, status, body, want)
		}
	}
	f := s.follow("agent:carol", watchPath("rows:"+ch, "requests", "agents:"+carol))
	defer f.body.Close()
	if _, row := f.until("row"); row["deleted"] != true || row["title"] != nil {
		t.Errorf("carol sees %v", row)
	}
	many := make([]string, 17)
	for i := range many {
		many[i] = "summary"
	}
	for name, topics := range map[string][]string{
		"17 topics": many, "5 exact": {"audit", "requests", "channel:" + ch, "channel:" + strings.Repeat("1", 32), "channel:" + strings.Repeat("2", 32)},
		"201 rows": {"rows:" + strings.Repeat(ch+",", 200) + ch},
	} {
		if status, _ := s.ask(operator, "GET", watchPath(topics...), ""); status != http.StatusBadRequest {
			t.Errorf("%s: %d", name, status)
		}
	}
}

func TestAWatchSaysWhyItEnds(t *testing.T) {
	t.Parallel()
	for _, reason := range []string{"draining", "revoked"} {
		t.Run(reason, func(t *testing.T) {
			t.Parallel()
			keys := access.NewKeys()
			_, key, err := keys.Add(t.Context(), access.Operator, "", nil)
			if err != nil {
				t.Fatal(err)
			}
			stopping := make(chan struct{})
			s := newSite(t, func(cfg *api.Config) {
				cfg.Keys, cfg.Stands = keys, keys.Stands
				cfg.Stopping = stoppingWith(stopping)
			})
			f := s.follow(operator, watchPath("audit"), "Key", key.ID)
			f.until("hello")
			if reason == "draining" {
				close(stopping)
			} else if _, err := keys.Revoke(t.Context(), key.ID, nil); err != nil {
				t.Fatal(err)
			}
			if _, bye := f.until("bye"); bye["reason"] != reason {
				t.Errorf("bye: %v", bye)
			}
			if _, more := f.try(); more {
				t.Error("something follows bye")
			}
		})
	}
}

func TestAGapIsToldInAWatch(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.agent("alice")
	s.agent("bob")
	ch := s.open("conversation", "alice", "bob")
	f := s.follow(operator, watchPath("channel:"+ch+"@99.1.1"))
	defer f.body.Close()
	if ev, gap := f.until("gap"); gap["topic"] != "channel:"+ch || gap["reason"] == "" || ev.id == "" {
		t.Errorf("gap: %v", gap)
	}
	s.tell(ch, "alice", "after the gap")
	if _, data := f.until("envelope"); data["event_data"].(map[string]any)["text"] != "after the gap" {
		t.Errorf("after the gap: %v", data)
	}
}

func stoppingWith(c chan struct{}) func(context.Context) <-chan struct{} {
	return func(context.Context) <-chan struct{} { return c }
}

// An agent that watches is online, and its connection is listed.
func TestWhoWatchesIsOnline(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.agent("alice")
	id := s.human("hana")
	s.hub.Unbind(acker{s.hub}, id)
	agent := func() map[string]any {
		_, a := s.ask(operator, "GET", "/v1/agents/hana", "")
		return a
	}
	if a := agent(); a["online"] != false {
		t.Fatalf("before: %v", a)
	}
	f := s.follow("agent:hana", watchPath("summary"))
	f.until("hello")
	a := agent()
	connections := a["connections"].([]any)
	if a["online"] != true || len(connections) != 1 {
		t.Fatalf("while it watches: %v", a)
	}
	if c := connections[0].(map[string]any); c["dialect"] != "v1" || c["address"] == "" || c["since"] == "" {
		t.Errorf("the connection: %v", c)
	}
	_ = f.body.Close()
	s.awaitFollowers(0)
	if a := agent(); a["online"] != false || a["last_seen_at"] == nil {
		t.Errorf("after: %v", a)
	}
}
