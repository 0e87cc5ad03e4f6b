package session_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/parley-hub/parley/conformance/spec"
	"github.com/parley-hub/parley/message/session"
	"github.com/parley-hub/parley/message/transcript"
	"github.com/parley-hub/parley/message/value"
	"github.com/parley-hub/parley/message/value/valuetest"
)

func codeOf(err error) string {
	var refusal *session.Error
	if !errors.As(err, &refusal) {
		return fmt.Sprint(err)
	}
	return strings.TrimPrefix(refusal.Code, "agents_conversation_session_")
}

func now() time.Time { return time.Date(2031, 3, 9, 17, 20, 0, 0, time.UTC) }

var anna = &transcript.Principal{ActingUserID: 7, Agent: "helper"}

type input = map[string]any

// make7 makes a session of user 7 and returns its id.
func make7(t testing.TB, s session.Service, in input) string {
	t.Helper()
	out, err := s.Do(t.Context(), session.AbilityCreate, anna, in)
	if err != nil {
		t.Fatal(err)
	}
	return value.Text(out.At("session").(*value.Map).At("session_id"))
}

func TestStatements(t *testing.T) {
	t.Parallel()
	s := session.Service{Store: transcript.NewMemory(now, 0)}
	for range 110 {
		make7(t, s, nil)
	}
	for limit, want := range map[any]int{0: 1, 101: 100, 1000000: 100, 100: 100, 99: 99, -3: 1, "2": 2, "x": 1, 2.9: 2, nil: 50, true: 1} {
		spec.Check(t, fmt.Sprintf("agent-message#87: an ability's limit %v", limit), func(t *spec.T) {
			out, err := s.Do(t.Context(), session.AbilityList, anna, input{"limit": limit})
			t.NoError(err)
			list, _ := value.Values(out.At("sessions"))
			t.Equal(len(list), want)
		})
	}
	spec.Check(t, "agent-message#90: in a title", func(t *spec.T) {
		out, err := s.Do(t.Context(), session.AbilityTitle, anna, input{"session_id": make7(t, s, nil), "title": " \u00a0 "})
		t.NoError(err)
		t.Equal(out.At("session").(*value.Map).At("title"), any("\u00a0"))
	})
}

func TestAbilities(t *testing.T) {
	t.Parallel()
	s := session.Service{Store: transcript.NewMemory(now, 0)}
	do := func(ability string, in input) string {
		t.Helper()
		out, err := s.Do(t.Context(), ability, anna, in)
		if err != nil {
			return codeOf(err)
		}
		return valuetest.Write(out)
	}
	id := make7(t, s, input{"agent": " wiki ", "context": " rest ", "metadata": input{"k": 1}})
	row := func(id, agent, title, metadata, context string) string {
		return `{"session_id":"` + id + `","workspace_type":"site","workspace_id":"default","owner_type":"user","owner_key":"7","user_id":7,"agent_slug":"` + agent + `","title":"` + title + `","metadata":` + metadata +
			`,"provider":"","model":"","provider_response_id":null,"context":"` + context + `","mode":"` + context + `","created_at":"2031-03-09 17:20:00","updated_at":"2031-03-09 17:20:00","last_read_at":null,"expires_at":null`
	}
	if got, want := do(session.AbilityGet, input{"session_id": " " + id + " "}), `{"session":`+row(id, "wiki", "", `{"k":1}`, "rest")+`,"messages":[]}}`; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if got, want := do(session.AbilityTitle, input{"session_id": id, "title": " Tides "}), `{"session":`+row(id, "wiki", "Tides", `{"k":1}`, "rest")+`,"messages":[]}}`; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	second := make7(t, s, nil)
	if _, err := s.Store.Update(t.Context(), second, transcript.Update{Messages: []any{input{"content": "x"}}}); err != nil {
		t.Fatal(err)
	}
	if got, want := do(session.AbilityList, nil), `{"sessions":[`+row(second, "helper", "", `{}`, "chat")+`},`+row(id, "wiki", "Tides", `{"k":1}`, "rest")+`}]}`; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	for name, c := range map[string]struct {
		in   input
		want int
	}{
		"by agent": {input{"agent": "wiki"}, 1}, "by context": {input{"context": "chat"}, 1}, "by another": {input{"agent": "none"}, 0}, "from an offset": {input{"offset": 1}, 1}, "past the end": {input{"offset": "2"}, 0}, "a negative offset": {input{"offset": -4}, 2},
		"in another workspace": {input{"workspace": input{"workspace_type": "site", "workspace_id": "2"}}, 0}, "in this one": {input{"workspace": input{"workspace_type": "Site", "workspace_id": "default"}}, 2},
	} {
		out, err := s.Do(t.Context(), session.AbilityList, anna, c.in)
		if err != nil || value.Len(out.At("sessions")) != c.want {
			t.Errorf("%s: %v %v", name, out, err)
		}
	}
	if got := do(session.AbilityDelete, input{"session_id": id}); got != `{"deleted":true}` {
		t.Error(got)
	}
	for _, ability := range []string{session.AbilityGet, session.AbilityTitle, session.AbilityDelete} {
		if got := do(ability, input{"session_id": id, "title": "x"}); got != "not_found" {
			t.Errorf("%s of a deleted session: %s", ability, got)
		}
		if got := do(ability, input{"session_id": " ", "title": "x"}); got != "invalid_id" {
			t.Errorf("%s without an id: %s", ability, got)
		}
	}
	if got := do(session.AbilityTitle, input{"session_id": second, "title": " \t"}); got != "invalid_title" {
		t.Errorf("a blank title: %s", got)
	}
	if _, err := s.Do(t.Context(), "agents/none", anna, nil); err == nil || err.Error() != "session: there is no ability agents/none" {
		t.Errorf("%v", err)
	}
	s.SiteID = "12"
	if got := do(session.AbilityList, nil); got != `{"sessions":[]}` {
		t.Errorf("of another site: %s", got)
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	store := transcript.NewMemory(now, 0)
	s := session.Service{Store: store}
	id := make7(t, s, nil)
	own := func(ownerType, key any) input {
		return input{"session_id": id, "session_owner": input{"type": ownerType, "key": key}}
	}
	for name, c := range map[string]struct {
		s    session.Service
		p    *transcript.Principal
		in   input
		want string
	}{
		"nobody":                {s, nil, own("user", "7"), "unauthenticated"},
		"no owner":              {s, &transcript.Principal{}, nil, "owner_required"},
		"an owner without type": {s, anna, own("", "7"), "invalid_owner"},
		"an owner without key":  {s, anna, own("user", " "), "invalid_owner"},
		"the public":            {s, anna, own("audience", "public"), "non_isolating_owner"},
		"the public, prefixed":  {s, anna, own("audience", "audience:public"), "non_isolating_owner"},
		"another audience":      {s, anna, own("audience", "club"), "owner_forbidden"},
		"another user":          {s, anna, own("user", "8"), "user_owner_forbidden"},
		"another's prefix":      {s, anna, own("user", "user:8"), "user_owner_forbidden"},
		"a token":               {s, anna, own("token", "7"), "owner_forbidden"},
		"himself":               {s, anna, own("user", 7), "<nil>"},
		"himself, prefixed":     {s, anna, own("user", "user:7"), "<nil>"},
		"no store":              {session.Service{}, anna, nil, "no_store"},
		"a store of users":      {session.Service{Store: store, UsersOnly: true}, &transcript.Principal{OwnerType: "token", OwnerKey: "1"}, input{"session_id": id}, "principal_store_required"},
		"a user of it":          {session.Service{Store: store, UsersOnly: true}, anna, input{"session_id": id}, "<nil>"},
		"a bad workspace":       {s, anna, input{"session_id": id, "workspace": input{"workspace_type": "9"}}, "invalid_workspace"},
		"no workspace at all":   {s, anna, input{"session_id": id, "workspace": "x"}, "invalid_workspace"},
		"a stranger":            {s, &transcript.Principal{ActingUserID: 8}, input{"session_id": id}, "forbidden"},
		"an administrator":      {s, &transcript.Principal{ActingUserID: 8, Administrator: true}, input{"session_id": id}, "<nil>"},
		"another workspace":     {s, anna, input{"session_id": id, "workspace": input{"workspace_type": "site", "workspace_id": "2"}}, "forbidden"},
		"nothing there":         {s, anna, input{"session_id": "nope"}, "not_found"},
		"a reader, a stranger":  {session.Service{Store: ownerStore{store}}, &transcript.Principal{ActingUserID: 8, Administrator: true}, input{"session_id": id}, "not_found"},
		"a reader, the owner":   {session.Service{Store: ownerStore{store}}, anna, input{"session_id": id}, "<nil>"},
	} {
		if _, err := c.s.Do(t.Context(), session.AbilityGet, c.p, c.in); codeOf(err) != c.want {
			t.Errorf("%s: got %v, want %s", name, err, c.want)
		}
	}
	broken := session.Service{Store: brokenStore{store}}
	for ability, want := range map[string]string{
		session.AbilityCreate: "create_failed", session.AbilityTitle: "update_failed", session.AbilityDelete: "delete_failed", session.AbilityList: "disk full",
	} {
		if _, err := broken.Do(t.Context(), ability, anna, input{"session_id": id, "title": "x"}); codeOf(err) != want || !errors.Is(err, errDisk) {
			t.Errorf("%s: %v", ability, err)
		}
	}
	for name, store := range map[string]transcript.Store{"": unreadable{store}, " for owners": ownerStore{unreadable{store}}} {
		for _, ability := range []string{session.AbilityGet, session.AbilityTitle, session.AbilityDelete} {
			if _, err := (session.Service{Store: store}).Do(t.Context(), ability, anna, input{"session_id": id, "title": "x"}); codeOf(err) != "disk full" {
				t.Errorf("%s of a store%s that cannot read: %v", ability, name, err)
			}
		}
	}
	refusing := session.Service{Store: refusingStore{store}}
	for ability, want := range map[string]string{session.AbilityCreate: "create_failed", session.AbilityTitle: "update_failed", session.AbilityDelete: "delete_failed"} {
		if _, err := refusing.Do(t.Context(), ability, anna, input{"session_id": id, "title": "x"}); codeOf(err) != want {
			t.Errorf("%s: %v", ability, err)
		}
	}
}

var errDisk = errors.New("disk full")

// ownerStore reads under an owner.
type ownerStore struct{ transcript.Store }

func (s ownerStore) GetForOwner(ctx context.Context, scope transcript.Scope, owner transcript.Owner, id string) (transcript.Session, error) {
	row, err := s.Get(ctx, id)
	if err != nil {
		return transcript.Session{}, err
	}
	if row.Scope != scope || row.Owner != owner {
		return transcript.Session{}, transcript.ErrNotFound
	}
	return row, nil
}

// unreadable fails to read.
type unreadable struct{ transcript.Store }

func (unreadable) Get(context.Context, string) (transcript.Session, error) {
	return transcript.Session{}, errDisk
}

// brokenStore fails to write.
type brokenStore struct{ transcript.Store }

func (brokenStore) Create(context.Context, transcript.Scope, transcript.Owner, transcript.Create) (string, error) {
	return "", errDisk
}
func (brokenStore) SetTitle(context.Context, string, string) (bool, error) { return false, errDisk }
func (brokenStore) Delete(context.Context, string) (bool, error)           { return false, errDisk }
func (brokenStore) List(context.Context, transcript.Scope, transcript.Owner, transcript.Query) ([]transcript.Session, error) {
	return nil, errDisk
}

// refusingStore returns false without an error.
type refusingStore struct{ transcript.Store }

func (refusingStore) Create(context.Context, transcript.Scope, transcript.Owner, transcript.Create) (string, error) {
	return "", nil
}
func (refusingStore) SetTitle(context.Context, string, string) (bool, error) { return false, nil }
func (refusingStore) Delete(context.Context, string) (bool, error)           { return false, nil }

// forgettingStore loses what it created.
type forgettingStore struct {
	transcript.Store
	reads int
}

func (s *forgettingStore) Get(ctx context.Context, id string) (transcript.Session, error) {
	if s.reads--; s.reads < 0 {
		return transcript.Session{}, transcript.ErrNotFound
	}
	return s.Store.Get(ctx, id)
}

func TestLostSessions(t *testing.T) {
	t.Parallel()
	store := transcript.NewMemory(now, 0)
	id := make7(t, session.Service{Store: store}, nil)
	for ability, c := range map[string]struct {
		reads int
		want  string
	}{session.AbilityCreate: {0, "create_failed"}, session.AbilityTitle: {1, "update_failed"}} {
		_, err := session.Service{Store: &forgettingStore{store, c.reads}}.Do(t.Context(), ability, anna, input{"session_id": id, "title": "x"})
		if codeOf(err) != c.want {
			t.Errorf("%s: %v", ability, err)
		}
	}
}

func TestErrors(t *testing.T) {
	t.Parallel()
	for code, want := range map[string]int{
		"unauthenticated": 401, "forbidden": 403, "user_owner_forbidden": 403, "owner_forbidden": 403, "not_found": 404, "no_store": 500, "principal_store_required": 500,
		"create_failed": 500, "update_failed": 500, "delete_failed": 500, "owner_required": 400, "invalid_owner": 400, "non_isolating_owner": 400, "invalid_workspace": 400, "invalid_id": 400, "invalid_title": 400,
	} {
		if got := (&session.Error{Code: "agents_conversation_session_" + code}).Status(); got != want {
			t.Errorf("%s: %d", code, got)
		}
	}
	if text := (&session.Error{Code: "c", Text: "t"}).Error(); text != "c: t" {
		t.Error(text)
	}
	for _, context := range []string{"chat", "interactive", "rest"} {
		if !session.Interactive(context) {
			t.Errorf("%s is automation", context)
		}
	}
	if session.Interactive("cron") || session.Interactive("") {
		t.Error("automation is interactive")
	}
}
