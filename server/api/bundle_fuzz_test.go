package api_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"

	"github.com/parley-hub/parley/adapter"
	"github.com/parley-hub/parley/adapter/branch"
	"github.com/parley-hub/parley/adapter/direct"
	"github.com/parley-hub/parley/adapter/room"
	"github.com/parley-hub/parley/adapter/thread"
	"github.com/parley-hub/parley/adapter/transcript"
	"github.com/parley-hub/parley/hub"
	"github.com/parley-hub/parley/server/access"
)

// sealed is the text of a bundle with the checksum that it needs.
func sealed(text string) string {
	if text = strings.TrimRight(text, "\n"); text != "" {
		text += "\n"
	}
	sum := sha256.Sum256([]byte(text))
	return text + fmt.Sprintf(`{"sha256":%q,"lines":%d}`, hex.EncodeToString(sum[:]), strings.Count(text, "\n")+1) + "\n"
}

// unsealed is a bundle without its checksum.
func unsealed(bundle string) string {
	bundle = strings.TrimRight(bundle, "\n")
	return bundle[:strings.LastIndexByte(bundle, '\n')+1]
}

// FuzzImport brings in bundles whose checksum is right, whatever they say: they are
// refused and leave nothing, or are ended channels that every page shows, that are
// exported again, and that change nothing else.
func FuzzImport(f *testing.F) {
	s := newSiteOn(f, hub.Options{Adapters: append(adapter.All(), branch.New(branch.Options{}), room.New(room.Options{}), thread.New(thread.Options{}),
		direct.New(direct.Options{}), transcript.New(transcript.Options{}))})
	for _, name := range []string{"alice", "bob", "carol"} {
		s.agent(name)
	}
	ask := func(method, path, body string) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		r := httptest.NewRequest(method, "http://hub"+path, strings.NewReader(body))
		s.v1.ServeHTTP(w, r.WithContext(access.With(r.Context(), access.Principal{Role: access.Operator})))
		return w
	}
	var kept []string
	for _, kind := range []string{"conversation", "discussion", "consulting"} {
		others := []string{"bob", "carol"}
		if kind != "discussion" {
			others = others[:1]
		}
		ch := s.open(kind, "alice", others...)
		s.tell(ch, "alice", "hello")
		if w := ask("POST", "/v1/channels/"+ch+"/requests", strings.Replace(question, "{", `{"asked_by":"alice",`, 1)); w.Code != http.StatusCreated {
			f.Fatal(w.Body)
		}
		kept = append(kept, ch)
		bundle := unsealed(ask("GET", "/v1/channels/"+ch+"/export?form=bundle", "").Body.String())
		f.Add(bundle)
		for from, to := range map[string]string{
			`"sequence":2`: `"sequence":3`, `"origin_dialect":"hub"`: `"origin_dialect":"agh"`, `"event_type":"ag2.`: `"event_type":"agh.`,
			`"state":"active"`: `"state":"pending"`, `"type":"` + kind + `"`: `"type":"transcript"`, `"version":1`: `"version":7`,
			`"envelopes":`: `"envelopes":1`, `"creator_id":"`: `"creator_id":"zz`, `"agent_id":"`: `"agent_id":"\u0000`, ch: "x", `"knobs":{`: `"knobs":{"graph":7,`,
			`"created_at":"2`: `"created_at":"9`, `{"envelope":{`: `{"side":{`, "\n": "\n\n", `"participants":[`: `"participants":[null,`,
			`"channel":{`: `"home":{"home_id":"x","kind":"hpd","name":"s"},"channel":{`, `"labels":{`: `"members_of":"` + ch + `","labels":{"parley.type":"x",`,
		} {
			f.Add(strings.Replace(bundle, from, to, 1))
			f.Add(strings.ReplaceAll(bundle, from, to))
		}
	}
	listed := func() string {
		list, _, err := s.hub.Channels(context.Background(), hub.ListOptions{})
		ids := make([]string, len(list))
		for i, m := range list {
			ids[i] = m.ID
		}
		return fmt.Sprint(ids, err)
	}
	before := listed()
	logs := func() (all string) {
		for _, ch := range kept {
			all += ask("GET", "/v1/channels/"+ch+"/events", "").Body.String()
		}
		requests, _, _ := strings.Cut(ask("GET", "/v1/requests", "").Body.String(), `"position"`)
		return all + requests
	}
	said := logs()
	f.Fuzz(func(t *testing.T, text string) {
		w := ask("POST", "/v1/import", sealed(text))
		var told struct {
			Home     *string `json:"home_id"`
			Channels []struct {
				ID string `json:"channel_id"`
			} `json:"channels"`
		}
		if err := json.Unmarshal(w.Body.Bytes(), &told); err != nil || w.Code >= 500 {
			t.Fatalf("%d %s", w.Code, w.Body)
		}
		for _, one := range told.Channels {
			at := "/v1/channels/" + one.ID
			m, err := s.hub.Channel(t.Context(), one.ID)
			if err != nil || !m.State.Terminal() {
				t.Fatalf("%+v, %v", m, err)
			}
			for _, page := range []string{"", "/events", "/messages", "/views/full_transcript", "/views/threaded", "/state", "/graph", "/path", "/export", "/export?form=markdown"} {
				if w := ask("GET", at+page, ""); w.Code >= 500 {
					t.Fatalf("%s: %d %s", page, w.Code, w.Body)
				}
			}
			again := ask("GET", at+"/export?form=bundle", "")
			if again.Code != http.StatusOK {
				t.Fatalf("exported again: %d %s", again.Code, again.Body)
			}
			if copied := ask("POST", "/v1/import", again.Body.String()); copied.Code != http.StatusCreated {
				t.Fatalf("%s\nimported again: %d %s", again.Body, copied.Code, copied.Body)
			} else if err := json.Unmarshal(copied.Body.Bytes(), &told); err != nil {
				t.Fatal(err)
			}
			for _, id := range []string{one.ID, told.Channels[0].ID} {
				if w := ask("DELETE", "/v1/channels/"+id, ""); w.Code != http.StatusNoContent {
					t.Fatalf("deleted: %d %s", w.Code, w.Body)
				}
			}
		}
		if after := listed(); after != before {
			t.Fatalf("channels are %s, and were %s", after, before)
		}
		if after := logs(); after != said {
			t.Fatal(cmp.Diff(said, after))
		}
	})
}
