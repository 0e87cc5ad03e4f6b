package main

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/parley-hub/parley/adapter"
	"github.com/parley-hub/parley/hub"
	"github.com/parley-hub/parley/identity"
	"github.com/parley-hub/parley/internal/doctor"
	"github.com/parley-hub/parley/journal"
	"github.com/parley-hub/parley/journal/mem"
)

// renaming writes one name where a hub writes another of the same length, as a
// hub did that did not refuse it.
type renaming struct {
	journal.Engine
	from, to string
}

func (r renaming) Append(ctx context.Context, b journal.Batch) (*journal.Ticket, error) {
	in := func(data []byte) []byte { return bytes.ReplaceAll(data, []byte(r.from), []byte(r.to)) }
	for i := range b.Appends {
		for j := range b.Appends[i].Records {
			record := &b.Appends[i].Records[j]
			record.Data = in(record.Data)
			for k := range record.Put {
				record.Put[k] = journal.IndexPut{Key: in(record.Put[k].Key), Value: in(record.Put[k].Value)}
			}
			for k := range record.Take {
				record.Take[k].Name = strings.ReplaceAll(record.Take[k].Name, r.from, r.to)
			}
		}
	}
	return r.Engine.Append(ctx, b)
}

// onceRegistered registers a name in a store, written as another.
func onceRegistered(t *testing.T, store *mem.Store, name, written string) (id string) {
	t.Helper()
	engine, err := mem.Open(mem.Options{Store: store})
	if err != nil {
		t.Fatal(err)
	}
	h, err := hub.Open(t.Context(), renaming{engine, name, written}, hub.Options{Adapters: adapter.All(), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	p, err := h.Register(t.Context(), hub.Registration{Passport: &identity.Passport{Name: name, Auth: identity.Auth{Scheme: identity.SchemeNone}}})
	h.Close()
	if closed := engine.Close(); err != nil || closed != nil {
		t.Fatal(err, closed)
	}
	return p.ID()
}

// In data from before such names were refused, an agent may be called by
// another's id: the id wins, on every surface, and doctor reports the name.
func TestOldNamesThatAreIDs(t *testing.T) {
	t.Parallel()
	store := mem.NewStore()
	bob := onceRegistered(t, store, "bob", "bob")
	squatter := onceRegistered(t, store, strings.Repeat("z", len(bob)), bob)
	at := runningHubOn(t, store, nil)
	operator := &site{t: t, at: at}
	type agent struct {
		Passport struct {
			ID   string `json:"agent_id"`
			Name string `json:"name"`
		} `json:"passport"`
	}
	show := func(ref string) (a agent) {
		t.Helper()
		if err := operator.ask(http.MethodGet, "/v1/agents/"+ref, "", &a); err != nil {
			t.Fatal(err)
		}
		return a
	}
	if a := show(squatter); a.Passport.Name != bob {
		t.Fatalf("the store has no such name: %+v", a)
	}
	if a := show(bob); a.Passport.ID != bob || a.Passport.Name != "bob" {
		t.Errorf("bob's id shows %+v", a)
	}

	joinAs(t, at, "bob") // acknowledges what bob is invited to
	var opened struct {
		ID           string `json:"channel_id"`
		Participants []struct {
			ID string `json:"agent_id"`
		} `json:"participants"`
	}
	joinAs(t, at, "alice")
	if err := operator.ask(http.MethodPost, "/v1/channels", `{"type":"conversation","creator":"alice","participants":["`+bob+`"]}`, &opened); err != nil {
		t.Fatal(err)
	}
	if len(opened.Participants) != 2 || opened.Participants[1].ID != bob {
		t.Errorf("bob's id invites %+v", opened.Participants)
	}
	said := "/v1/channels/" + opened.ID + "/events"
	for _, words := range []string{
		`{"sender":"alice","text":"psst","audience":["` + bob + `"]}`, `{"sender":"` + bob + `","text":"as myself"}`,
	} {
		if err := operator.ask(http.MethodPost, said, words, nil); err != nil {
			t.Fatalf("%s: %v", words, err)
		}
	}
	var log struct {
		Events []struct {
			Sender   string   `json:"sender_id"`
			Audience []string `json:"audience"`
			Data     struct {
				Text string `json:"text"`
			} `json:"event_data"`
		} `json:"events"`
	}
	if err := operator.ask(http.MethodGet, said, "", &log); err != nil {
		t.Fatal(err)
	}
	heard := 0
	for _, e := range log.Events {
		switch e.Data.Text {
		case "psst":
			heard++
			if !slices.Equal(e.Audience, []string{bob}) {
				t.Errorf("a whisper to bob's id is for %v", e.Audience)
			}
		case "as myself":
			heard++
			if e.Sender != bob {
				t.Errorf("what bob's id says is from %s", e.Sender)
			}
		}
	}
	if heard != 2 {
		t.Errorf("%d of 2 are in the log: %+v", heard, log)
	}

	findings := doctor.Examine(t.Context(), doctor.Patient{Dir: t.TempDir(), HubURL: at.URL, Listen: "127.0.0.1:0", HTTP: http.DefaultClient})
	i := slices.IndexFunc(findings, func(f doctor.Finding) bool { return f.Check == "agents' names" })
	if i < 0 || findings[i].Verdict != doctor.Warning || !strings.Contains(findings[i].Found, bob+" is the name of "+squatter) {
		t.Errorf("doctor finds %+v", findings)
	}

	if err := operator.ask(http.MethodDelete, "/v1/agents/"+bob, "", nil); err != nil {
		t.Fatal(err)
	}
	if a := show(squatter); a.Passport.ID != squatter {
		t.Errorf("removing bob removed %+v", a)
	}
	if err := operator.ask(http.MethodGet, "/v1/agents/bob", "", nil); err == nil {
		t.Error("bob is still there")
	}
}
