// Package transcripttest is the suite that every transcript store passes. It
// uses a store only through its contract and through the two functions of its
// Harness.
package transcripttest

import (
	"context"
	"errors"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-hub/parley/message"
	"github.com/parley-hub/parley/message/transcript"
	"github.com/parley-hub/parley/message/value"
)

// Harness makes stores and opens them for the suite.
type Harness struct {
	// New returns an empty store that calls now for the time.
	New func(t testing.TB, now func() time.Time) transcript.Store
	// Plant replaces a session's messages by rows as they are, as a copy from
	// elsewhere would.
	Plant func(t testing.TB, store transcript.Store, id string, rows []string)
	// Rows returns a session's messages as the store holds them.
	Rows func(t testing.TB, store transcript.Store, id string) []string
}

// Run runs the suite.
func Run(t *testing.T, h Harness) {
	for name, test := range map[string]func(*testing.T, *fixture){
		"Create":        testCreate,
		"Get":           testGet,
		"Update":        testUpdate,
		"Refuse":        testRefuse,
		"BadRows":       testBadRows,
		"Title":         testTitle,
		"Delete":        testDelete,
		"List":          testList,
		"Pages":         testPages,
		"RecentPending": testRecentPending,
		"Lock":          testLock,
		"LockContest":   testLockContest,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := &fixture{Harness: h, ctx: t.Context()}
			f.at.Store(time.Date(2031, 3, 9, 17, 20, 0, 0, time.UTC).UnixNano())
			f.store = h.New(t, f.now)
			test(t, f)
		})
	}
}

// fixture is a store with a clock that the test moves.
type fixture struct {
	Harness
	ctx   context.Context
	store transcript.Store
	at    atomic.Int64
}

func (f *fixture) now() time.Time          { return time.Unix(0, f.at.Load()).UTC() }
func (f *fixture) advance(d time.Duration) { f.at.Add(int64(d)) }

var (
	site  = transcript.Scope{Type: "site", ID: "1"}
	other = transcript.Scope{Type: "site", ID: "2"}
	anna  = transcript.User(7)
	bot   = transcript.Owner{Type: transcript.OwnerToken, Key: "7"}
)

func (f *fixture) create(t *testing.T, scope transcript.Scope, owner transcript.Owner, c transcript.Create) string {
	t.Helper()
	id, err := f.store.Create(f.ctx, scope, owner, c)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func (f *fixture) get(t *testing.T, id string) transcript.Session {
	t.Helper()
	s, err := f.store.Get(f.ctx, id)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func (f *fixture) update(t *testing.T, id string, u transcript.Update) {
	t.Helper()
	if ok, err := f.store.Update(f.ctx, id, u); err != nil || !ok {
		t.Fatalf("update: %v %v", ok, err)
	}
}

// texts returns the contents of a session's rows; a bad one is its error.
func texts(s transcript.Session) []string {
	list := []string{}
	for _, row := range s.Messages {
		if row.Err != nil {
			list = append(list, "error: "+row.Err.Error())
			continue
		}
		list = append(list, value.Text(row.Content))
	}
	return list
}

func rows(contents ...string) []any {
	list := []any{}
	for _, c := range contents {
		list = append(list, map[string]any{"role": "user", "content": c})
	}
	return list
}

func same(t *testing.T, what string, got, want any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s: %s", what, diff)
	}
}

func testCreate(t *testing.T, f *fixture) {
	id := f.create(t, site, anna, transcript.Create{AgentSlug: "helper", Metadata: value.New().Set("k", []any{}), Context: "rest"})
	if !regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`).MatchString(id) {
		t.Errorf("%q is not a UUID of version 4", id)
	}
	s := f.get(t, id)
	same(t, "the new session", row(t, s), `{"session_id":"`+id+`","workspace_type":"site","workspace_id":"1","owner_type":"user","owner_key":"7","user_id":7,`+
		`"agent_slug":"helper","title":"","metadata":{"k":[]},"provider":"","model":"","provider_response_id":null,"context":"rest","mode":"rest",`+
		`"created_at":"2031-03-09 17:20:00","updated_at":"2031-03-09 17:20:00","last_read_at":null,"expires_at":null,"messages":[]}`)
	plain := f.get(t, f.create(t, other, bot, transcript.Create{}))
	same(t, "the defaults", []any{plain.Context, plain.AgentSlug, plain.Metadata.Len(), plain.Owner, plain.Scope}, []any{"chat", "", 0, bot, other})
	if again := f.create(t, site, anna, transcript.Create{}); again == id || again == plain.ID {
		t.Error("an id is given twice")
	}
	if _, err := f.store.Create(f.ctx, site, anna, transcript.Create{Metadata: value.New().Set("k", "\xff")}); err == nil {
		t.Error("metadata that is not JSON is stored")
	}
}

func row(t *testing.T, s transcript.Session) string {
	t.Helper()
	text, err := value.Append(nil, s.Canonical())
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func testGet(t *testing.T, f *fixture) {
	id := f.create(t, site, anna, transcript.Create{Metadata: value.New().Set("k", "v")})
	for _, unknown := range []string{"", " ", "nope", id + "x"} {
		if _, err := f.store.Get(f.ctx, unknown); !errors.Is(err, transcript.ErrNotFound) {
			t.Errorf("%q: %v", unknown, err)
		}
	}
	f.get(t, id).Metadata.Set("k", "changed")
	same(t, "what a reader changed", f.get(t, id).Metadata.At("k"), any("v"))
}

func testUpdate(t *testing.T, f *fixture) {
	id := f.create(t, site, anna, transcript.Create{Metadata: value.New().Set("old", true)})
	first, second := "resp-1", "resp-2"
	f.advance(90 * time.Second)
	f.update(t, id, transcript.Update{
		Messages: rows("a", "b"), Metadata: value.New().Set("n", value.Number("1.0")), Provider: "anthropic", Model: "m1", ProviderResponseID: &first,
	})
	s := f.get(t, id)
	same(t, "the transcript", texts(s), []string{"a", "b"})
	same(t, "the rest", []any{mustJSON(t, s.Metadata), s.Provider, s.Model, *s.ProviderResponseID, s.CreatedAt, s.UpdatedAt},
		[]any{`{"n":1.0}`, "anthropic", "m1", "resp-1", "2031-03-09 17:20:00", "2031-03-09 17:21:30"})

	f.update(t, id, transcript.Update{Messages: rows("c")})
	s = f.get(t, id)
	same(t, "replaced, not appended", texts(s), []string{"c"})
	same(t, "metadata is replaced, the provider's are kept", []any{s.Metadata.Len(), s.Provider, s.Model, *s.ProviderResponseID}, []any{0, "anthropic", "m1", "resp-1"})

	f.update(t, id, transcript.Update{Messages: map[string]any{"x": map[string]any{"content": "d"}}, Provider: "openai", Model: "m2", ProviderResponseID: &second})
	s = f.get(t, id)
	same(t, "replaced", []any{texts(s), s.Provider, s.Model, *s.ProviderResponseID}, []any{[]string{"d"}, "openai", "m2", "resp-2"})

	second, *s.ProviderResponseID = "given, then changed", "got, then changed"
	same(t, "nobody else's to change", *f.get(t, id).ProviderResponseID, "resp-2")

	f.update(t, id, transcript.Update{})
	same(t, "emptied", texts(f.get(t, id)), []string{})
	if ok, err := f.store.Update(f.ctx, "nope", transcript.Update{Messages: rows("a")}); ok || err != nil {
		t.Errorf("an unknown id: %v %v", ok, err)
	}

	// Whatever was written, the stored form is canonical and is read back
	// unchanged.
	f.update(t, id, transcript.Update{Messages: []any{
		map[string]any{"role": "assistant", "content": "x", "metadata": map[string]any{"type": "tool_call", "tool_name": "t", "turn": 1}, "id": "i"},
		map[string]any{"version": "1", "type": "delta", "data": map[string]any{"n": value.Number("9007199254740993")}},
	}})
	want := []string{
		`{"schema":"agents-api.message","version":1,"type":"tool_call","role":"assistant","content":"x","payload":{"tool_name":"t","turn":1},"metadata":{"tool_name":"t","turn":1,"type":"tool_call"},"id":"i"}`,
		`{"schema":"agents-api.message","version":1,"type":"delta","role":"assistant","content":"","payload":{"n":9007199254740993},"metadata":{}}`,
	}
	same(t, "the stored rows", f.Rows(t, f.store, id), want)
	read := []string{}
	for _, e := range f.get(t, id).Envelopes() {
		read = append(read, mustJSON(t, e))
	}
	same(t, "the rows read", read, want)
}

func mustJSON(t *testing.T, v interface{ MarshalJSON() ([]byte, error) }) string {
	t.Helper()
	text, err := v.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func testRefuse(t *testing.T, f *fixture) {
	id := f.create(t, site, anna, transcript.Create{})
	f.update(t, id, transcript.Update{Messages: rows("a"), Model: "m"})
	before := row(t, f.get(t, id))
	f.advance(time.Minute)
	for what, u := range map[string]transcript.Update{
		"a bad message":     {Messages: append(rows("x", "y"), map[string]any{"role": ""}, "s"), Model: "n"},
		"an object of host": {Messages: append(rows("x", "y"), map[string]any{"metadata": map[string]any{"dto": struct{ A int }{1}}})},
		"no message":        {Messages: append(rows("x", "y"), 7)},
	} {
		ok, err := f.store.Update(f.ctx, id, u)
		var refusal *transcript.WriteError
		if ok || !errors.As(err, &refusal) || refusal.Index != 2 {
			t.Errorf("%s: %v %v", what, ok, err)
		}
	}
	if ok, err := f.store.Update(f.ctx, id, transcript.Update{Messages: append(rows("x"), map[string]any{"role": ""})}); ok || !errors.Is(err, message.ErrRole) || !strings.Contains(err.Error(), "messages[1]") {
		t.Errorf("the refusal: %v %v", ok, err)
	}
	if ok, err := f.store.Update(f.ctx, id, transcript.Update{Messages: "all of them"}); ok || !errors.Is(err, message.ErrNotContainer) {
		t.Errorf("no list: %v %v", ok, err)
	}
	if ok, err := f.store.Update(f.ctx, id, transcript.Update{Metadata: value.New().Set("k", "\xff")}); ok || err == nil {
		t.Errorf("metadata that is not JSON: %v %v", ok, err)
	}
	same(t, "a refused write", row(t, f.get(t, id)), before)
}

func testBadRows(t *testing.T, f *fixture) {
	id := f.create(t, site, anna, transcript.Create{})
	planted := []string{`{"role":"user","content":"a"}`, `{"role":""}`, `{"content":`, `{"version":1,"type":"text","data":[],"content":"b"}`, `7`}
	f.Plant(t, f.store, id, planted)
	s := f.get(t, id)
	same(t, "the rows, each in its place", texts(s), []string{
		"a", "error: invalid_ai_message_envelope: role must be a non-empty string", "error: invalid_ai_message_envelope: envelope must be JSON serializable",
		"b", "error: invalid_ai_message_envelope: message must be an array",
	})
	same(t, "what was found", []string{string(s.Messages[1].Raw), string(s.Messages[2].Raw)}, planted[1:3])
	same(t, "the good ones", len(s.Envelopes()), 2)
	listed, err := f.store.List(f.ctx, site, anna, transcript.Query{IncludeMessages: true})
	if err != nil || len(listed) != 1 {
		t.Fatalf("%d %v", len(listed), err)
	}
	same(t, "listed", texts(listed[0]), texts(s))
	same(t, "the store is not changed by reading", f.Rows(t, f.store, id), planted)

	// A caller that writes the transcript back keeps them.
	kept := append([]any{}, map[string]any{"role": "user", "content": "new"})
	for _, row := range s.Messages[1:3] {
		kept = append(kept, row)
	}
	f.update(t, id, transcript.Update{Messages: kept})
	same(t, "bad rows that are kept", f.Rows(t, f.store, id), []string{
		`{"schema":"agents-api.message","version":1,"type":"text","role":"user","content":"new","payload":{},"metadata":{}}`, planted[1], planted[2],
	})
}

func testTitle(t *testing.T, f *fixture) {
	id := f.create(t, site, anna, transcript.Create{})
	f.advance(time.Second)
	if ok, err := f.store.SetTitle(f.ctx, id, "Tides"); !ok || err != nil {
		t.Errorf("%v %v", ok, err)
	}
	s := f.get(t, id)
	same(t, "the title", []any{s.Title, s.UpdatedAt}, []any{"Tides", "2031-03-09 17:20:01"})
	if ok, err := f.store.SetTitle(f.ctx, "nope", "Tides"); ok || err != nil {
		t.Errorf("an unknown id: %v %v", ok, err)
	}
}

func testDelete(t *testing.T, f *fixture) {
	id := f.create(t, site, anna, transcript.Create{})
	kept := f.create(t, site, anna, transcript.Create{})
	for _, what := range []string{id, id, "nope", ""} {
		if ok, err := f.store.Delete(f.ctx, what); !ok || err != nil {
			t.Errorf("%q: %v %v", what, ok, err)
		}
	}
	if _, err := f.store.Get(f.ctx, id); !errors.Is(err, transcript.ErrNotFound) {
		t.Errorf("a deleted session: %v", err)
	}
	same(t, "the others", f.get(t, kept).ID, kept)
	if ok, err := f.store.Update(f.ctx, id, transcript.Update{Messages: rows("a")}); ok || err != nil {
		t.Errorf("updating it: %v %v", ok, err)
	}
}
