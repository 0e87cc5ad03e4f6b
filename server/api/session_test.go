package api_test

import (
	"bufio"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-hub/parley/adapter"
	"github.com/parley-hub/parley/hub"
	"github.com/parley-hub/parley/journal/mem"
	"github.com/parley-hub/parley/server/access"
	"github.com/parley-hub/parley/server/api"
)

// door is a hub behind the guard, with keys and sessions.
type door struct {
	t        *testing.T
	hub      *hub.Hub
	keys     *access.Keys
	sessions *access.Sessions
	handler  http.Handler
}

func newDoor(t *testing.T, engine *mem.Engine, limits access.SessionLimits, behindProxy bool) *door {
	t.Helper()
	quiet := slog.New(slog.DiscardHandler)
	h, err := hub.Open(t.Context(), engine, hub.Options{Adapters: adapter.All(), Log: quiet})
	if err != nil {
		t.Fatal(err)
	}
	d := &door{t: t, hub: h, keys: access.NewKeys()}
	if err := d.keys.Load(t.Context(), h, ""); err != nil {
		t.Fatal(err)
	}
	d.sessions = access.NewSessions(d.keys, limits)
	if err := d.sessions.Load(t.Context(), h); err != nil {
		t.Fatal(err)
	}
	v1 := api.New(api.Config{Hub: h, Version: "test", Name: "desk", Log: quiet, Keys: d.keys, Sessions: d.sessions, Stands: d.keys.Stands})
	guard := &access.Guard{Keys: d.keys, Sessions: d.sessions, Listen: "127.0.0.1:7440", BehindProxy: behindProxy}
	d.handler = guard.Wrap(v1)
	return d
}

func openMem(t *testing.T) *mem.Engine {
	t.Helper()
	engine, err := mem.Open(mem.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = engine.Close() })
	return engine
}

func (d *door) key(role access.Role, agent string) (token string, key access.Key) {
	d.t.Helper()
	token, key, err := d.keys.Add(d.t.Context(), role, agent, nil)
	if err != nil {
		d.t.Fatal(err)
	}
	return token, key
}

func (d *door) ask(method, path, body string, header ...string) *http.Response {
	d.t.Helper()
	r := httptest.NewRequest(method, "http://localhost:7440"+path, strings.NewReader(body))
	r.RemoteAddr = "127.0.0.1:5000"
	for i := 0; i < len(header); i += 2 {
		r.Header.Add(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	d.handler.ServeHTTP(w, r)
	return w.Result()
}

func decode(t *testing.T, from io.Reader) map[string]any {
	t.Helper()
	var body map[string]any
	if err := json.NewDecoder(from).Decode(&body); err != nil {
		t.Fatal(err)
	}
	return body
}

// signIn signs in and returns both halves, as headers.
func (d *door) signIn(body string) (cookie *http.Cookie, proof string, halves []string) {
	d.t.Helper()
	answer := d.ask(http.MethodPost, "/v1/session", body)
	if answer.StatusCode != http.StatusCreated || len(answer.Cookies()) != 1 {
		d.t.Fatalf("signing in: %s, cookies %v", answer.Status, answer.Cookies())
	}
	cookie = answer.Cookies()[0]
	proof, _ = decode(d.t, answer.Body)["proof"].(string)
	if proof == "" || cookie.Value == "" {
		d.t.Fatal("a half is missing")
	}
	return cookie, proof, []string{"Cookie", cookie.Name + "=" + cookie.Value, access.ProofHeader, proof}
}

func (d *door) session(header ...string) map[string]any {
	d.t.Helper()
	answer := d.ask(http.MethodGet, "/v1/session", "", header...)
	if answer.StatusCode != http.StatusOK {
		d.t.Fatalf("GET /v1/session: %s", answer.Status)
	}
	return decode(d.t, answer.Body)
}

func TestASessionTellsWhoAsks(t *testing.T) {
	t.Parallel()
	d := newDoor(t, openMem(t), access.SessionLimits{}, false)
	t.Cleanup(d.hub.Close)
	local := d.session()
	if local["role"] != "operator" || local["via"] != "loopback" || local["keys_exist"] != false || local["hub"].(map[string]any)["name"] != "desk" {
		t.Errorf("without keys, this machine: %v", local)
	}
	if code := d.ask(http.MethodPost, "/v1/session/codes", "").StatusCode; code != http.StatusConflict {
		t.Errorf("a code without a key: %d", code)
	}
	token, key := d.key(access.Reader, "")
	nobody := d.session()
	if nobody["role"] != "anonymous" || nobody["via"] != nil || nobody["keys_exist"] != true || nobody["hub"].(map[string]any)["name"] != "" {
		t.Errorf("nobody: %v", nobody)
	}
	if !slices.Contains(nobody["may"].([]any), any("signIn")) || slices.Contains(nobody["may"].([]any), any("listChannels")) {
		t.Errorf("nobody may %v", nobody["may"])
	}
	bearer := d.session("Authorization", "Bearer "+token)
	may := bearer["may"].([]any)
	if bearer["role"] != "reader" || bearer["via"] != "bearer" || bearer["key"] != key.ID || bearer["expires_at"] != nil {
		t.Errorf("a reader: %v", bearer)
	}
	if !slices.Contains(may, any("listChannels")) || slices.Contains(may, any("closeChannel")) || slices.Contains(may, any("addKey")) {
		t.Errorf("a reader may %v", may)
	}
	_, _, halves := d.signIn(`{"token":"` + token + `"}`)
	signed := d.session(halves...)
	if signed["role"] != "reader" || signed["via"] != "session" || signed["key"] != key.ID {
		t.Errorf("signed in: %v", signed)
	}
	if at, err := time.Parse(time.RFC3339, signed["expires_at"].(string)); err != nil || !strings.HasSuffix(signed["expires_at"].(string), "Z") || time.Until(at) > 12*time.Hour {
		t.Errorf("expires at %v", signed["expires_at"])
	}
}

func TestBothHalvesOfASessionAreNeeded(t *testing.T) {
	t.Parallel()
	d := newDoor(t, openMem(t), access.SessionLimits{}, false)
	t.Cleanup(d.hub.Close)
	token, _ := d.key(access.Operator, "")
	reader, _ := d.key(access.Reader, "")
	cookie, proof, halves := d.signIn(`{"token":"` + token + `"}`)
	other, otherProof, _ := d.signIn(`{"token":"` + token + `"}`)
	if !cookie.HttpOnly || cookie.SameSite != http.SameSiteStrictMode || cookie.Path != "/" || cookie.Secure || cookie.Name != "parley-session-7440" || cookie.Domain != "" {
		t.Errorf("the cookie: %v", cookie)
	}
	for name, tt := range map[string]struct {
		status int
		header []string
	}{
		"both":                    {http.StatusOK, halves},
		"cookie alone":            {http.StatusUnauthorized, halves[:2]},
		"proof alone":             {http.StatusUnauthorized, halves[2:]},
		"another's proof":         {http.StatusUnauthorized, append(halves[:2:2], access.ProofHeader, otherProof)},
		"another's cookie":        {http.StatusUnauthorized, []string{"Cookie", other.Name + "=" + other.Value, access.ProofHeader, proof}},
		"two proofs":              {http.StatusUnauthorized, append(slices.Clone(halves), access.ProofHeader, proof)},
		"a bearer rules over it":  {http.StatusForbidden, append(slices.Clone(halves), "Authorization", "Bearer "+reader)},
		"a wrong bearer does too": {http.StatusUnauthorized, append(slices.Clone(halves), "Authorization", "Bearer wrong")},
		"the token as a cookie":   {http.StatusUnauthorized, []string{"Cookie", cookie.Name + "=" + token, access.ProofHeader, token}},
		"another port's name":     {http.StatusUnauthorized, []string{"Cookie", "parley-session-7441=" + cookie.Value, access.ProofHeader, proof}},
	} {
		if got := d.ask(http.MethodGet, "/v1/backup", "", tt.header...).StatusCode; name == "both" {
			// This hub makes no backups; who asks is settled first.
			if got == http.StatusUnauthorized || got == http.StatusForbidden {
				t.Errorf("%s: %d", name, got)
			}
		} else if got != tt.status {
			t.Errorf("%s: %d, want %d", name, got, tt.status)
		}
	}
	if answer := d.ask(http.MethodDelete, "/v1/session", "", halves...); answer.StatusCode != http.StatusNoContent || answer.Cookies()[0].MaxAge >= 0 {
		t.Errorf("signing out: %s %v", answer.Status, answer.Cookies())
	}
	if d.session(halves...)["role"] != "anonymous" {
		t.Error("a session outlives signing out")
	}
}

func TestACookieBehindAProxyIsSecure(t *testing.T) {
	t.Parallel()
	d := newDoor(t, openMem(t), access.SessionLimits{}, true)
	t.Cleanup(d.hub.Close)
	token, _ := d.key(access.Operator, "")
	cookie, _, halves := d.signIn(`{"token":"` + token + `"}`)
	if !cookie.Secure || cookie.Name != "__Host-parley-session-7440" || cookie.Path != "/" || cookie.Domain != "" {
		t.Errorf("the cookie: %v", cookie)
	}
	if d.session(halves...)["role"] != "operator" {
		t.Error("the session does not hold")
	}
}

func TestACodeSignsInOnceAndSoon(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := newDoor(t, openMem(t), access.SessionLimits{}, false)
		defer d.hub.Close()
		token, _ := d.key(access.Agent, "alice")
		code := func() string {
			answer := d.ask(http.MethodPost, "/v1/session/codes", "", "Authorization", "Bearer "+token)
			if answer.StatusCode != http.StatusCreated {
				t.Fatalf("a code: %s", answer.Status)
			}
			return decode(t, answer.Body)["code"].(string)
		}
		first, second := code(), code()
		_, _, halves := d.signIn(`{"code":"` + first + `"}`)
		if who := d.session(halves...); who["role"] != "agent" || who["agent"] != "alice" {
			t.Errorf("signed in as %v", who)
		}
		if got := d.ask(http.MethodPost, "/v1/session", `{"code":"`+first+`"}`).StatusCode; got != http.StatusUnauthorized {
			t.Errorf("a code twice: %d", got)
		}
		if got := d.ask(http.MethodPost, "/v1/session/codes", "", halves...).StatusCode; got != http.StatusForbidden {
			t.Errorf("a session makes a code: %d", got)
		}
		<-time.After(61 * time.Second)
		if got := d.ask(http.MethodPost, "/v1/session", `{"code":"`+second+`"}`).StatusCode; got != http.StatusUnauthorized {
			t.Errorf("a code after a minute: %d", got)
		}
		for _, body := range []string{`{}`, `{"token":"a","code":"b"}`} {
			if got := d.ask(http.MethodPost, "/v1/session", body).StatusCode; got != http.StatusBadRequest {
				t.Errorf("%s: %d", body, got)
			}
		}
	})
}

func TestSessionsExpireAndAreBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := newDoor(t, openMem(t), access.SessionLimits{Lasts: time.Hour, Most: 2}, false)
		defer d.hub.Close()
		token, _ := d.key(access.Operator, "")
		other, _ := d.key(access.Reader, "")
		signIn := `{"token":"` + token + `"}`
		_, _, first := d.signIn(signIn)
		<-time.After(time.Second)
		_, _, second := d.signIn(signIn)
		if got := d.ask(http.MethodPost, "/v1/session", `{"token":"`+other+`"}`); got.StatusCode != http.StatusServiceUnavailable ||
			!strings.Contains(decode(t, got.Body)["detail"].(string), "console.sessions") {
			t.Errorf("one too many of another key: %s", got.Status)
		}
		_, _, third := d.signIn(signIn)
		if d.session(first...)["role"] != "anonymous" || d.session(second...)["role"] != "operator" || d.session(third...)["role"] != "operator" {
			t.Error("one too many ends the oldest of its key")
		}
		<-time.After(time.Hour)
		if d.session(second...)["role"] != "anonymous" {
			t.Error("a session outlives console.session")
		}
		d.signIn(`{"token":"` + other + `"}`) // expired ones make room
	})
}

func TestFailedLoginsAreBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := newDoor(t, openMem(t), access.SessionLimits{}, false)
		defer d.hub.Close()
		token, _ := d.key(access.Operator, "")
		for i := range 10 {
			if got := d.ask(http.MethodPost, "/v1/session", `{"token":"wrong"}`).StatusCode; got != http.StatusUnauthorized {
				t.Fatalf("attempt %d: %d", i, got)
			}
		}
		answer := d.ask(http.MethodPost, "/v1/session", `{"token":"`+token+`"}`)
		if answer.StatusCode != http.StatusTooManyRequests || answer.Header.Get("Retry-After") == "" {
			t.Errorf("after ten: %s", answer.Status)
		}
		<-time.After(time.Minute)
		d.signIn(`{"token":"` + token + `"}`)
	})
}

func TestSessionsSurviveARestartHashed(t *testing.T) {
	t.Parallel()
	engine := openMem(t)
	d := newDoor(t, engine, access.SessionLimits{}, false)
	token, key := d.key(access.Operator, "")
	cookie, proof, halves := d.signIn(`{"token":"` + token + `"}`)
	kept, _, err := d.hub.Documents(t.Context(), "console-session", hub.DocumentPage{})
	if err != nil || len(kept) != 1 {
		t.Fatalf("kept: %v %v", kept, err)
	}
	_, secret, _ := strings.Cut(cookie.Value, "_")
	if data := string(kept[0].Data); strings.Contains(data, secret) || strings.Contains(data, proof) || strings.Contains(data, token) {
		t.Errorf("a secret is kept: %s", data)
	}
	d.hub.Close()
	d = newDoor(t, engine, access.SessionLimits{}, false)
	t.Cleanup(d.hub.Close)
	if d.session(halves...)["via"] != "session" {
		t.Error("a session is lost with a restart")
	}
	list := decode(t, d.ask(http.MethodGet, "/v1/sessions", "", halves...).Body)["sessions"].([]any)
	if len(list) != 1 || list[0].(map[string]any)["key"] != key.ID || list[0].(map[string]any)["current"] != true {
		t.Errorf("listed: %v", list)
	}
	id := list[0].(map[string]any)["id"].(string)
	reader, _ := d.key(access.Reader, "")
	if got := d.ask(http.MethodDelete, "/v1/sessions/"+id, "", "Authorization", "Bearer "+reader).StatusCode; got != http.StatusForbidden {
		t.Errorf("another key ends it: %d", got)
	}
	if got := d.ask(http.MethodDelete, "/v1/sessions/"+id, "", "Authorization", "Bearer "+token).StatusCode; got != http.StatusNoContent {
		t.Errorf("an operator ends it: %d", got)
	}
	if d.session(halves...)["role"] != "anonymous" {
		t.Error("it was ended")
	}
	for _, kind := range []string{"session_started", "session_ended"} {
		lines, _, err := d.hub.AuditLog(t.Context(), hub.AuditQuery{Kind: kind})
		if err != nil || len(lines) != 1 {
			t.Errorf("%s is audited %d times (%v)", kind, len(lines), err)
		}
	}
}

func TestASessionEndsWithItsKeyAndItsStreams(t *testing.T) {
	t.Parallel()
	d := newDoor(t, openMem(t), access.SessionLimits{}, false)
	t.Cleanup(d.hub.Close)
	served := httptest.NewServer(d.handler)
	t.Cleanup(served.Close)
	d.key(access.Operator, "")
	token, key := d.key(access.Reader, "")
	cookie, proof, halves := d.signIn(`{"token":"` + token + `"}`)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, served.URL+"/v1/audit?follow", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Host = "localhost:7440"
	r.AddCookie(&http.Cookie{Name: cookie.Name, Value: cookie.Value})
	r.Header.Set(access.ProofHeader, proof)
	stream, err := served.Client().Do(r)
	if err != nil || stream.StatusCode != http.StatusOK {
		t.Fatalf("a stream of a session: %v %v", stream, err)
	}
	defer stream.Body.Close()
	read := bufio.NewReader(stream.Body)
	if _, err := read.ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	if _, err := d.keys.Revoke(t.Context(), key.ID, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, read); err != nil {
		t.Logf("the stream ended with %v", err)
	}
	if d.session(halves...)["role"] != "anonymous" {
		t.Error("a session outlives its key")
	}
	kept, _, err := d.hub.Documents(t.Context(), "console-session", hub.DocumentPage{})
	if err != nil || len(kept) != 0 {
		t.Errorf("kept: %v %v", kept, err)
	}
}
