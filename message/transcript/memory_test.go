package transcript_test

import (
	"errors"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/parley-hub/parley/conformance/spec"
	"github.com/parley-hub/parley/message"
	"github.com/parley-hub/parley/message/transcript"
	"github.com/parley-hub/parley/message/transcript/transcripttest"
	"github.com/parley-hub/parley/message/value"
	"github.com/parley-hub/parley/message/value/valuetest"
)

func TestMemory(t *testing.T) {
	t.Parallel()
	transcripttest.Run(t, transcripttest.Harness{
		New: func(_ testing.TB, now func() time.Time) transcript.Store { return transcript.NewMemory(now, 0) },
		Plant: func(t testing.TB, store transcript.Store, id string, rows []string) {
			raw := [][]byte{}
			for _, row := range rows {
				raw = append(raw, []byte(row))
			}
			if !store.(*transcript.Memory).Import(id, raw) {
				t.Fatalf("there is no session %s", id)
			}
		},
		Rows: func(_ testing.TB, store transcript.Store, id string) []string {
			rows := []string{}
			for _, raw := range store.(*transcript.Memory).Rows(id) {
				rows = append(rows, string(raw))
			}
			return rows
		},
	})
}

var site = transcript.Scope{Type: "site", ID: "1"}

// store returns a memory with a clock and one session.
func store(t testing.TB) (m *transcript.Memory, id string, advance func(time.Duration)) {
	t.Helper()
	at := time.Date(2031, 3, 9, 17, 20, 0, 0, time.UTC)
	m = transcript.NewMemory(func() time.Time { return at }, 0)
	id, err := m.Create(t.Context(), site, transcript.User(7), transcript.Create{})
	if err != nil {
		t.Fatal(err)
	}
	return m, id, func(d time.Duration) { at = at.Add(d) }
}

func TestStatements(t *testing.T) {
	t.Parallel()
	spec.Check(t, "agent-message#84: stale lock token cannot release", func(t *spec.T) {
		m, id, advance := store(t)
		stale, _ := m.Acquire(t.Context(), id, time.Second)
		advance(time.Second)
		current, _ := m.Acquire(t.Context(), id, time.Minute)
		ok, err := m.Release(t.Context(), id, stale)
		t.NoError(err)
		t.False(ok, "a stale token released")
		again, _ := m.Acquire(t.Context(), id, time.Minute)
		t.Equal(again, "")
		ok, _ = m.Release(t.Context(), id, current)
		t.True(ok, "the current token releases")
	})
	spec.Check(t, "agent-message#85: deleting an unknown session is true", func(t *spec.T) {
		m, id, _ := store(t)
		gone := func(id string) {
			t.Helper()
			ok, err := m.Delete(t.Context(), id)
			t.NoError(err)
			t.True(ok, "deleting %q", id)
		}
		gone("nope")
		gone("")
		_, err := m.Get(t.Context(), id)
		t.NoError(err)
		gone(id)
		gone(id)
		_, err = m.Get(t.Context(), id)
		t.ErrorIs(err, transcript.ErrNotFound)
	})
	spec.Check(t, "agent-message#86: update_session with empty provider keeps the old one", func(t *spec.T) {
		m, id, _ := store(t)
		response := "r1"
		_, err := m.Update(t.Context(), id, transcript.Update{Provider: "anthropic", Model: "m", ProviderResponseID: &response})
		t.NoError(err)
		_, err = m.Update(t.Context(), id, transcript.Update{})
		t.NoError(err)
		s, err := m.Get(t.Context(), id)
		t.NoError(err)
		t.Equal(s.Provider, "anthropic")
		t.Equal(s.Model, "m")
		t.Equal(*s.ProviderResponseID, "r1")
	})
	for limit, want := range map[int]int{0: 1, -3: 1, 1: 1, 2: 2} {
		spec.Check(t, fmt.Sprintf("agent-message#87: a store's limit %d", limit), func(t *spec.T) {
			m, _, _ := store(t)
			for range 4 {
				_, err := m.Create(t.Context(), site, transcript.User(7), transcript.Create{})
				t.NoError(err)
			}
			list, err := m.List(t.Context(), site, transcript.User(7), transcript.Query{Limit: &limit})
			t.NoError(err)
			t.Equal(len(list), want)
		})
	}

	spec.Check(t, "agent-message#90: in a workspace", func(t *spec.T) {
		scope, err := transcript.NewScope(" Site ", "\u00a01 ")
		t.NoError(err)
		t.Equal(scope, transcript.Scope{Type: "site", ID: "\u00a01"})
		_, err = transcript.NewScope("\u00a0site", "1")
		t.Equal(err.Error(), "invalid_agent_workspace_scope: workspace_type must be a lowercase slug")
	})

	host := `[{"role":"user","content":"plain"},{"version":"1","type":"delta","content":"d","data":{"i":1}},{"role":"assistant","content":"c","metadata":{"type":"tool_call","turn":1}}]`
	canonical := []string{
		`{"schema":"agents-api.message","version":1,"type":"text","role":"user","content":"plain","payload":{},"metadata":{}}`,
		`{"schema":"agents-api.message","version":1,"type":"delta","role":"assistant","content":"d","payload":{"i":1},"metadata":{}}`,
		`{"schema":"agents-api.message","version":1,"type":"tool_call","role":"assistant","content":"c","payload":{"turn":1},"metadata":{"type":"tool_call","turn":1}}`,
	}
	stored := func(t *spec.T, messages any) (*transcript.Memory, string) {
		m, id, _ := store(t)
		ok, err := m.Update(t.Context(), id, transcript.Update{Messages: messages})
		t.NoError(err)
		t.True(ok, "the session is known")
		return m, id
	}
	raw := func(m *transcript.Memory, id string) []string {
		rows := []string{}
		for _, row := range m.Rows(id) {
			rows = append(rows, string(row))
		}
		return rows
	}
	spec.Check(t, "seed-004#1: a session reads as envelopes with the seven keys", func(t *spec.T) {
		m, id := stored(t, valuetest.Decode(t, host))
		s, err := m.Get(t.Context(), id)
		t.NoError(err)
		for _, e := range s.Envelopes() {
			text, err := e.MarshalJSON()
			t.NoError(err)
			t.Equal(valuetest.Decode(t, string(text)).(*value.Map).Keys(), []string{"schema", "version", "type", "role", "content", "payload", "metadata"})
		}
		t.Equal(len(s.Messages), 3)
	})
	spec.Check(t, "seed-004#2: the transcript store keeps envelopes only", func(t *spec.T) {
		m, id := stored(t, valuetest.Decode(t, host))
		t.Equal(raw(m, id), canonical)
	})
	spec.Check(t, "seed-004#2: the transcript store returns envelopes only", func(t *spec.T) {
		m, id, _ := store(t)
		t.True(m.Import(id, [][]byte{[]byte(`{"role":"user","content":"plain"}`)}), "a row of an older host")
		s, err := m.Get(t.Context(), id)
		t.NoError(err)
		t.Equal(valuetest.Write(s.Messages[0].Canonical()), canonical[0])
	})
	spec.Check(t, "seed-004#3: a projection is stored as the envelope it stands for", func(t *spec.T) {
		p, err := message.ToProvider(valuetest.Decode(t, `{"version":1,"type":"delta","content":"d","data":{"i":1}}`))
		t.NoError(err)
		m, id := stored(t, []any{p})
		t.Equal(raw(m, id), []string{`{"schema":"agents-api.message","version":1,"type":"delta","role":"assistant","content":"d","payload":{},"metadata":{"type":"delta","i":1}}`})
	})
	spec.Check(t, "seed-004#29: stored and returned", func(t *spec.T) {
		metadata := `{"vendor":{"signature":"s","n":9007199254740993,"f":1.0},"empty":{},"list":[],"null":null}`
		m, id := stored(t, valuetest.Decode(t, `[{"role":"user","content":"x","metadata":`+metadata+`}]`))
		s, err := m.Get(t.Context(), id)
		t.NoError(err)
		t.Equal(valuetest.Write(s.Messages[0].Metadata), metadata)
	})
	spec.Check(t, "seed-004#36: what is stored is canonical and stays so", func(t *spec.T) {
		m, id := stored(t, valuetest.Decode(t, host))
		for _, row := range m.Rows(id) {
			e, err := message.NormalizeJSON(row)
			t.NoError(err)
			text, err := e.MarshalJSON()
			t.NoError(err)
			t.Equal(string(text), string(row))
		}
	})
	spec.Check(t, "seed-004#51: a store adapter normalizes what comes in", func(t *spec.T) {
		m, id := stored(t, []any{map[string]any{"role": "user", "content": "plain"}})
		t.Equal(raw(m, id), canonical[:1])
	})
	spec.Check(t, "seed-004#51: or refuses", func(t *spec.T) {
		m, id := stored(t, valuetest.Decode(t, host))
		_, err := m.Update(t.Context(), id, transcript.Update{Messages: valuetest.Decode(t, `[{"role":"user"},{"content":5}]`)})
		t.ErrorIs(err, message.ErrContent)
		t.Equal(raw(m, id), canonical)
	})
	spec.Check(t, "seed-004#52: a store adapter returns envelopes to its readers", func(t *spec.T) {
		m, id := stored(t, valuetest.Decode(t, host))
		s, err := m.Get(t.Context(), id)
		t.NoError(err)
		t.Equal(valuetest.Write(s.Canonical().At("messages")), "["+canonical[0]+","+canonical[1]+","+canonical[2]+"]")
	})
	type hostDTO struct{ Secret string }
	spec.Check(t, "seed-004#53: a host's object is refused", func(t *spec.T) {
		m, id := stored(t, valuetest.Decode(t, host))
		_, err := m.Update(t.Context(), id, transcript.Update{Messages: []any{map[string]any{"content": []any{hostDTO{"x"}}}}})
		t.ErrorIs(err, message.ErrSerializable)
		t.Equal(raw(m, id), canonical)
	})
	spec.Check(t, "seed-004#53: and dropped where nothing is kept of it", func(t *spec.T) {
		m, id := stored(t, []any{map[string]any{"role": "user", "content": "plain", "dto": hostDTO{"x"}}})
		t.Equal(raw(m, id), canonical[:1])
	})
}

func TestMemoryIsBounded(t *testing.T) {
	t.Parallel()
	m := transcript.NewMemory(time.Now, 2)
	create := func() (string, error) {
		return m.Create(t.Context(), site, transcript.User(1), transcript.Create{})
	}
	first, _ := create()
	if _, err := create(); err != nil {
		t.Fatal(err)
	}
	if id, err := create(); !errors.Is(err, transcript.ErrFull) || id != "" {
		t.Errorf("%q %v", id, err)
	}
	if _, err := m.Delete(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	if _, err := create(); err != nil {
		t.Errorf("after a deletion: %v", err)
	}
	one := transcript.NewMemory(time.Now, 1)
	for i, want := range []error{nil, transcript.ErrFull} {
		if _, err := one.Create(t.Context(), site, transcript.User(1), transcript.Create{}); !errors.Is(err, want) {
			t.Errorf("session %d of one: %v", i, err)
		}
	}
	if m.Rows("nope") != nil || m.Import("nope", nil) {
		t.Error("an unknown session has rows")
	}
}

func TestScope(t *testing.T) {
	t.Parallel()
	const code = "invalid_agent_workspace_scope: "
	for in, want := range map[string]string{
		`{"workspace_type":"zaz09","workspace_id":"x"}`:     `{"workspace_type":"zaz09","workspace_id":"x"}`,
		`{"workspace_type":" Site ","workspace_id":7}`:      `{"workspace_type":"site","workspace_id":"7"}`,
		`{"workspace_type":"a9_-z","workspace_id":" X y "}`: `{"workspace_type":"a9_-z","workspace_id":"X y"}`,
		`{}`:                                           code + "workspace_type must be non-empty",
		`"s"`:                                          code + "workspace_type must be non-empty",
		`{"workspace_type":["site"]}`:                  code + "workspace_type must be non-empty",
		`{"workspace_type":" \t"}`:                     code + "workspace_type must be non-empty",
		`{"workspace_type":"9site"}`:                   code + "workspace_type must be a lowercase slug",
		`{"workspace_type":"_site"}`:                   code + "workspace_type must be a lowercase slug",
		`{"workspace_type":"{site"}`:                   code + "workspace_type must be a lowercase slug",
		`{"workspace_type":"a site"}`:                  code + "workspace_type must be a lowercase slug",
		`{"workspace_type":"a/"}`:                      code + "workspace_type must be a lowercase slug",
		`{"workspace_type":"a:"}`:                      code + "workspace_type must be a lowercase slug",
		"{\"workspace_type\":\"a`\"}":                  code + "workspace_type must be a lowercase slug",
		`{"workspace_type":"a{"}`:                      code + "workspace_type must be a lowercase slug",
		`{"workspace_type":"é"}`:                       code + "workspace_type must be a lowercase slug",
		`{"workspace_type":"site"}`:                    code + "workspace_id must be non-empty",
		`{"workspace_type":"site","workspace_id":" "}`: code + "workspace_id must be non-empty",
	} {
		s, err := transcript.ScopeFrom(valuetest.Decode(t, in))
		got := valuetest.Write(s.Canonical())
		if err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s\ngot  %s\nwant %s", in, got, want)
		}
	}
	if key := (transcript.Scope{Type: "site", ID: "7"}).Key(); key != "site:7" {
		t.Error(key)
	}
}

func TestOwners(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		p    transcript.Principal
		want transcript.Owner
		ok   bool
	}{
		{transcript.Principal{OwnerType: "team", OwnerKey: "blue", ActingUserID: 7}, transcript.Owner{Type: "team", Key: "blue"}, true},
		{transcript.Principal{OwnerType: "team", ActingUserID: 7}, transcript.Owner{Type: "user", Key: "7"}, true},
		{transcript.Principal{OwnerKey: "blue", ActingUserID: 7}, transcript.Owner{Type: "user", Key: "7"}, true},
		{transcript.Principal{ActingUserID: 7, Source: "agent_token", TokenID: "t1"}, transcript.Owner{Type: "token", Key: "t1"}, true},
		{transcript.Principal{ActingUserID: 7, Source: "agent_token"}, transcript.Owner{}, false},
		{transcript.Principal{ActingUserID: 7, Source: "rest", TokenID: "t1"}, transcript.Owner{Type: "user", Key: "7"}, true},
		{transcript.Principal{TokenID: "t1"}, transcript.Owner{}, false},
		{transcript.Principal{ActingUserID: -1}, transcript.Owner{}, false},
		{transcript.Principal{}, transcript.Owner{}, false},
	} {
		if got, ok := c.p.Owner(); got != c.want || ok != c.ok {
			t.Errorf("%+v: %v %v", c.p, got, ok)
		}
	}

	for _, c := range []struct {
		row   string
		owner transcript.Owner
		want  bool
	}{
		{`{"workspace_type":"site","workspace_id":1,"owner_type":"user","owner_key":7}`, transcript.User(7), true},
		{`{"workspace_type":"site","workspace_id":"2","owner_type":"user","owner_key":"7"}`, transcript.User(7), false},
		{`{"workspace_type":"net","workspace_id":"1","owner_type":"user","owner_key":"7"}`, transcript.User(7), false},
		{`{"workspace_type":"site","workspace_id":"1","owner_type":"user","owner_key":"8"}`, transcript.User(7), false},
		{`{"workspace_type":"site","workspace_id":"1","owner_type":"token","owner_key":"7"}`, transcript.User(7), false},
		{`{"workspace_type":"site","workspace_id":"1","principal_owner_type":"token","principal_owner_key":"7"}`, transcript.Owner{Type: "token", Key: "7"}, true},
		{`{"workspace_type":"site","workspace_id":"1","owner_type":"user","owner_key":"7","principal_owner_type":"token","principal_owner_key":"9"}`, transcript.User(7), true},
		{`{"workspace_type":"site","workspace_id":"1","user_id":7}`, transcript.User(7), true},
		{`{"workspace_type":"site","workspace_id":"1","user_id":"8"}`, transcript.User(7), false},
		{`{"workspace_type":"site","workspace_id":"1","user_id":7}`, transcript.Owner{Type: "token", Key: "7"}, false},
		{`{"workspace_type":"site","workspace_id":"1","owner_type":"user","user_id":7}`, transcript.User(7), false},
		{`{"workspace_type":"site","workspace_id":"1","owner_key":"7","user_id":7}`, transcript.User(7), false},
	} {
		if got := transcript.Owns(valuetest.Decode(t, c.row).(*value.Map), site, c.owner); got != c.want {
			t.Errorf("%s of %v: %v", c.row, c.owner, got)
		}
	}
	for owner, want := range map[transcript.Owner]string{
		transcript.User(7): "7", {Type: "token", Key: "7"}: "0", {Type: "user", Key: "x"}: "0", {Type: "user", Key: "-3"}: "0",
	} {
		if got := valuetest.Write(transcript.Session{Owner: owner}.Summary().At("user_id")); got != want {
			t.Errorf("%v: user %s", owner, got)
		}
	}
}

func TestNoLock(t *testing.T) {
	t.Parallel()
	var l transcript.Locker = transcript.NoLock{}
	if token, err := l.Acquire(t.Context(), "s", time.Minute); token != "" || err != nil {
		t.Errorf("%q %v", token, err)
	}
	if ok, err := l.Release(t.Context(), "s", ""); ok || err != nil {
		t.Errorf("%v %v", ok, err)
	}
}

func TestRows(t *testing.T) {
	t.Parallel()
	bad := transcript.ReadRow([]byte(`{"role":""}`))
	text, err := bad.MarshalJSON()
	want := `{"schema":"agents-api.message","version":1,"type":"error","role":"assistant","content":"This message could not be read: invalid_ai_message_envelope: role must be a non-empty string",` +
		`"payload":{"error":"invalid_ai_message_envelope: role must be a non-empty string"},"metadata":{}}`
	if err != nil || string(text) != want {
		t.Errorf("got  %s %v\nwant %s", text, err, want)
	}
	s := transcript.Session{Messages: []transcript.Row{bad, transcript.ReadRow([]byte(`{}`))}, LastReadAt: "l", ExpiresAt: "e"}
	row := s.Canonical()
	if got := valuetest.Write(row.At("messages")); got != "["+want+`,{"schema":"agents-api.message","version":1,"type":"text","role":"assistant","content":"","payload":{},"metadata":{}}]` {
		t.Errorf("messages: %s", got)
	}
	if row.At("last_read_at") != "l" || row.At("expires_at") != "e" || valuetest.Write(row.At("metadata")) != "{}" {
		t.Errorf("%s", valuetest.Write(row))
	}
	if _, err := transcript.Rows([]any{map[string]any{"metadata": math.NaN()}, math.NaN()}); err == nil || err.Error() != "transcript: messages[1] invalid_ai_message_envelope: message must be an array; nothing was written" {
		t.Errorf("%v", err)
	}
	if list, err := transcript.Rows(nil); err != nil || len(list) != 0 {
		t.Errorf("%v %v", list, err)
	}
}

func TestUnread(t *testing.T) {
	t.Parallel()
	messages, err := message.NormalizeAll(valuetest.Decode(t, `[
		{"role":"user","content":"q","metadata":{"timestamp":"2031-03-09 18:00:00"}},
		{"content":"a","metadata":{"timestamp":"2031-03-09 17:00:00"}},
		{"content":"b","metadata":{"timestamp":"2031-03-09T17:00:01Z"}},
		{"content":"c","metadata":{"timestamp":"2031-03-09T18:30:00+01:00"}},
		{"content":"d"},
		{"content":"e","metadata":{"timestamp":"2031-03-10"}},
		{"content":"f","metadata":{"timestamp":"2031-03-09T16:59:59"}},
		{"content":"t","metadata":{"type":"tool_call","timestamp":"2031-03-11"}},
		{"role":"assistant","content":"r","metadata":{"type":"tool_result","timestamp":"2031-03-11"}}]`))
	if err != nil {
		t.Fatal(err)
	}
	for at, want := range map[string]int{"": 6, "2031-03-09 17:00:00": 3, "2031-03-09T17:00:00Z": 3, "2031-03-09T17:29:59": 2, "2031-03-10": 0, "2030-01-01": 5, "nonsense": 0} {
		if got := transcript.Unread(messages, at); got != want {
			t.Errorf("since %q: %d, want %d", at, got, want)
		}
	}
}
