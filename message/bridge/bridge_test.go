package bridge_test

import (
	"errors"
	"fmt"
	"regexp"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-hub/parley/conformance/spec"
	"github.com/parley-hub/parley/message/bridge"
	"github.com/parley-hub/parley/message/value/valuetest"
)

func now() time.Time {
	return time.Date(2031, 3, 9, 18, 20, 0, 0, time.FixedZone("CET", 3600))
}

func TestItem(t *testing.T) {
	t.Parallel()
	item := func(text string) string {
		i, err := bridge.NewItem(valuetest.Decode(t, text), now())
		if err != nil {
			return err.Error()
		}
		return valuetest.Write(i.Canonical())
	}
	for in, want := range map[string]string{
		`{"queue_id":" q ","client_id":" Desk_Client!! 2 ","agent":"_A é b_","content":" x "}`:                                                                                                                      `{"queue_id":"q","client_id":"desk-client-2","connector_id":null,"agent":"a-b","session_id":null,"role":"assistant","content":"x","completed":true,"created_at":"2031-03-09 17:20:00","delivery_status":"pending","metadata":{}}`,
		`{"queue_id":7,"client_id":5,"agent":"a","connector_id":"My_Bot","session_id":" s ","role":" System ","content":true,"completed":0,"created_at":" t ","delivery_status":"Failed","metadata":{"k":1,"0":2}}`: `{"queue_id":"7","client_id":"5","connector_id":"my-bot","agent":"a","session_id":"s","role":"system","content":"1","completed":false,"created_at":" t ","delivery_status":"failed","metadata":{"k":1}}`,
		`{"queue_id":"q","client_id":"c","agent":"a","connector_id":"--","session_id":" ","role":"tool","content":"x","completed":null,"delivery_status":"delivered","metadata":"m"}`:                               `{"queue_id":"q","client_id":"c","connector_id":null,"agent":"a","session_id":null,"role":"tool","content":"x","completed":true,"created_at":"2031-03-09 17:20:00","delivery_status":"delivered","metadata":{}}`,
		`{"queue_id":" "}`:                                                                          "queue_id must be non-empty.",
		`{"queue_id":"q"}`:                                                                          "client_id must be a non-empty slug.",
		`{"queue_id":"q","client_id":"--"}`:                                                         "client_id must be a non-empty slug.",
		`{"queue_id":"q","client_id":"c"}`:                                                          "agent must be a non-empty slug.",
		`{"queue_id":"q","client_id":"c","agent":"a","role":"user"}`:                                "role must be assistant, system, or tool.",
		`{"queue_id":"q","client_id":"c","agent":"a","role":""}`:                                    "role must be assistant, system, or tool.",
		`{"queue_id":"q","client_id":"c","agent":"a"}`:                                              "content must be non-empty.",
		`{"queue_id":"q","client_id":"c","agent":"a","content":" \t"}`:                              "content must be non-empty.",
		`{"queue_id":"q","client_id":"c","agent":"a","content":"x","delivery_status":"on its way"}`: "delivery_status must be pending, delivered, or failed.",
		`"s"`: "client_id must be a non-empty slug.",
	} {
		if got := item(in); got != want {
			t.Errorf("%s\ngot  %s\nwant %s", in, got, want)
		}
	}
	spec.Check(t, "agent-message#90: in a queued item", func(t *spec.T) {
		i, err := bridge.NewItem(map[string]any{"queue_id": "\u00a0q ", "client_id": "c", "agent": "a", "session_id": " \u00a0", "content": " \u00a0 "}, now())
		t.NoError(err)
		t.Equal([]string{i.QueueID, i.SessionID, i.Content}, []string{"\u00a0q", "\u00a0", "\u00a0"})
	})
	i, err := bridge.NewItem(valuetest.Decode(t, `{"client_id":"c","agent":"a","content":"x"}`), now())
	j, _ := bridge.NewItem(valuetest.Decode(t, `{"client_id":"c","agent":"a","content":"x"}`), now())
	if err != nil || !regexp.MustCompile(`^bridge_[0-9a-f]{32}$`).MatchString(i.QueueID) || i.QueueID == j.QueueID {
		t.Errorf("%q and %q, %v", i.QueueID, j.QueueID, err)
	}
	for in, want := range map[string]string{"az09-AZ": "az09-az", "a__b": "a--b", "a !b": "a-b", "`a{": "a", "/a:": "a", "@a[": "a"} {
		if i, _ := bridge.NewItem(map[string]any{"queue_id": "q", "client_id": in, "agent": "a", "content": "x"}, now()); i.ClientID != want {
			t.Errorf("%q became %q", in, i.ClientID)
		}
	}
}

func TestQueue(t *testing.T) {
	t.Parallel()
	q := bridge.NewQueue(now, 0)
	add := func(id, client, session, content string) error {
		item, err := q.Enqueue(map[string]any{"queue_id": id, "client_id": client, "agent": "a", "session_id": session, "content": content})
		if err == nil && item.QueueID != id {
			t.Errorf("%s became %s", id, item.QueueID)
		}
		return err
	}
	ids := func(client string, limit int, sessions ...string) []string {
		list := []string{}
		for _, item := range q.Pending(client, limit, sessions...) {
			list = append(list, item.QueueID+"="+item.Content)
		}
		return list
	}
	same := func(what string, got []string, want ...string) {
		t.Helper()
		if diff := cmp.Diff(append([]string{}, want...), got); diff != "" {
			t.Errorf("%s: %s", what, diff)
		}
	}
	for i, client := range []string{"Desk_One", "desk-two", "desk-one", "desk-one"} {
		if err := add(fmt.Sprint(i), client, fmt.Sprintf("s%d", i%2), "x"); err != nil {
			t.Fatal(err)
		}
	}
	same("oldest first, its own", ids("desk_one", 0), "0=x", "2=x", "3=x")
	same("listed again", ids("desk-one", 0), "0=x", "2=x", "3=x")
	same("limited", ids("desk-one", 2), "0=x", "2=x")
	same("by session", ids("desk-one", 0, "s1"), "3=x")
	same("by sessions", ids("desk-one", 1, "s1", "s0"), "0=x")
	same("a stranger's", ids("desk-three", 0))

	if err := add("2", "desk-one", "s0", "again"); err != nil {
		t.Fatal(err)
	}
	same("overwritten in its place", ids("desk-one", 0), "0=x", "2=again", "3=x")
	if err := add("0", "desk-one", "s0", "first"); err != nil {
		t.Fatal(err)
	}
	same("the first one too", ids("desk-one", 0), "0=first", "2=again", "3=x")
	if err := add("2", "desk-two", "s0", "mine"); !errors.Is(err, bridge.ErrForeign) || err.Error() != bridge.ErrForeign.Error()+" (2)" {
		t.Errorf("another's id: %v", err)
	}
	if err := add("0", "desk-two", "s0", "mine"); !errors.Is(err, bridge.ErrForeign) {
		t.Errorf("another's first id: %v", err)
	}
	if err := add("9", "desk-two", "", " "); !errors.Is(err, bridge.ErrContent) {
		t.Errorf("a bad item: %v", err)
	}
	if n := q.Ack("desk-two", "0", "1", "nope"); n != 1 {
		t.Errorf("%d acknowledged", n)
	}
	if n := q.Ack("Desk_One", "0", "3", "3"); n != 2 {
		t.Errorf("%d acknowledged", n)
	}
	if n := q.Ack("desk-one", "0"); n != 0 {
		t.Errorf("%d acknowledged twice", n)
	}
	same("acknowledged ones are gone", ids("desk-one", 0), "2=again")
	same("of the other too", ids("desk-two", 0))

	for i := range 30 {
		if err := add(fmt.Sprintf("n%d", i), "many", "", "x"); err != nil {
			t.Fatal(err)
		}
	}
	if got := len(ids("many", 0)); got != 25 {
		t.Errorf("%d are listed by default", got)
	}
	if got := len(ids("many", 100)); got != 30 {
		t.Errorf("%d are listed", got)
	}
}

func TestQueueIsBounded(t *testing.T) {
	t.Parallel()
	q := bridge.NewQueue(now, 2)
	add := func(id string) error {
		_, err := q.Enqueue(map[string]any{"queue_id": id, "client_id": "c", "agent": "a", "content": "x"})
		return err
	}
	if err := errors.Join(add("1"), add("2"), add("2")); err != nil {
		t.Fatal(err)
	}
	if err := add("3"); !errors.Is(err, bridge.ErrFull) {
		t.Errorf("%v", err)
	}
	one := bridge.NewQueue(now, 1)
	for i, want := range []error{nil, bridge.ErrFull} {
		if _, err := one.Enqueue(map[string]any{"client_id": "c", "agent": "a", "content": "x"}); !errors.Is(err, want) {
			t.Errorf("item %d of one: %v", i, err)
		}
	}
	q.Ack("c", "1")
	if err := add("3"); err != nil {
		t.Error(err)
	}
}
