package chat_test

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	transcripts "github.com/parley-hub/parley/adapter/transcript"
	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub"
	"github.com/parley-hub/parley/identity"
	"github.com/parley-hub/parley/journal/mem"
	"github.com/parley-hub/parley/message/transcript"
	"github.com/parley-hub/parley/message/transcript/transcripttest"
	"github.com/parley-hub/parley/server/chat"
)

// opened is a store with access to what is behind it.
type opened struct {
	*chat.Store
	hub    *hub.Hub
	writer string
}

func openStore(t testing.TB, now func() time.Time, o transcripts.Options, cfg chat.StoreConfig) opened {
	t.Helper()
	engine, err := mem.Open(mem.Options{Store: mem.NewStore(), Shards: 4})
	if err != nil {
		t.Fatal(err)
	}
	h, err := hub.Open(context.Background(), engine, hub.Options{
		Now: now, Log: slog.New(slog.DiscardHandler), Adapters: []channel.Adapter{transcripts.New(o)},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.Close)
	p, err := h.Register(t.Context(), hub.Registration{Passport: &identity.Passport{Name: "hana", Kind: identity.Human, Auth: identity.Auth{Scheme: identity.SchemeNone}}})
	if err != nil {
		t.Fatal(err)
	}
	cfg.Hub = h
	cfg.Writer = func(context.Context, transcript.Owner) (string, error) { return p.ID(), nil }
	return opened{Store: chat.NewStore(cfg), hub: h, writer: p.ID()}
}

// channelOf returns the channel of a session.
func (o opened) channelOf(t testing.TB, id string) string {
	t.Helper()
	page, err := o.hub.Entries(t.Context(), hub.EntryQuery{Type: transcripts.Type, Kind: transcripts.Dialect, Prefix: transcripts.IndexSession + id})
	if err != nil || len(page.Entries) != 1 {
		t.Fatalf("%d entries, %v", len(page.Entries), err)
	}
	return page.Entries[0].Channel
}

func (o opened) rows(t testing.TB, id string) []string {
	t.Helper()
	var rows transcripts.Rows
	for e, err := range o.hub.Log(t.Context(), o.channelOf(t, id), 0, 0) {
		if err != nil {
			t.Fatal(err)
		}
		rows = transcripts.Apply(rows, e.Type, e.Data)
	}
	list := []string{}
	for _, row := range rows {
		list = append(list, string(row))
	}
	return list
}

// kinds returns the records of a session.
func (o opened) kinds(t testing.TB, id string) []string {
	t.Helper()
	list := []string{}
	for e, err := range o.hub.Log(t.Context(), o.channelOf(t, id), 0, 0) {
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, e.Type)
	}
	return list
}

func TestStore(t *testing.T) {
	t.Parallel()
	transcripttest.Run(t, transcripttest.Harness{
		New: func(t testing.TB, now func() time.Time) transcript.Store {
			return openStore(t, now, transcripts.Options{}, chat.StoreConfig{})
		},
		Plant: func(t testing.TB, store transcript.Store, id string, rows []string) {
			o := store.(opened)
			change := transcripts.Change{Rows: transcripts.Rows{}}
			for _, row := range rows {
				change.Rows = append(change.Rows, []byte(row))
			}
			data, err := transcripts.Encode(change)
			if err != nil {
				t.Fatal(err)
			}
			_, err = o.hub.Post(t.Context(), &envelope.Envelope{
				Channel: o.channelOf(t, id), Sender: o.writer, Type: transcripts.TypeReplaced, Data: data, Ext: transcripts.Mark,
			}, nil)
			if err != nil {
				t.Fatal(err)
			}
		},
		Rows: func(t testing.TB, store transcript.Store, id string) []string { return store.(opened).rows(t, id) },
	})
}

func said(texts ...string) []any {
	list := []any{}
	for _, text := range texts {
		list = append(list, map[string]any{"role": "user", "content": text})
	}
	return list
}

var (
	site = transcript.Scope{Type: "site", ID: "default"}
	hana = transcript.Owner{Type: "agent", Key: "hana"}
)

func create(t testing.TB, o opened) string {
	t.Helper()
	id, err := o.Create(t.Context(), site, hana, transcript.Create{AgentSlug: "parrot"})
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// A transcript is stored as its changes, and is read as a whole.
func TestChangesAreRecords(t *testing.T) {
	t.Parallel()
	o := openStore(t, time.Now, transcripts.Options{}, chat.StoreConfig{})
	id := create(t, o)
	for _, step := range [][]string{{"a", "b"}, {"a", "b", "c"}, {"a", "x"}, {"a", "x"}} {
		if ok, err := o.Update(t.Context(), id, transcript.Update{Messages: said(step...)}); !ok || err != nil {
			t.Fatalf("%v %v", ok, err)
		}
	}
	if ok, err := o.Compact(t.Context(), id, 1, said("short")); !ok || err != nil {
		t.Fatalf("%v %v", ok, err)
	}
	want := []string{transcripts.TypeCreated, transcripts.TypeAppended, transcripts.TypeAppended, transcripts.TypeReplaced, transcripts.TypeDescribed, transcripts.TypeCompacted}
	if diff := cmp.Diff(want, o.kinds(t, id)); diff != "" {
		t.Error(diff)
	}
	s, err := o.Get(t.Context(), id)
	if err != nil || len(s.Messages) != 2 || s.Messages[0].Content != "short" || s.Messages[1].Content != "x" {
		t.Errorf("got %+v, %v", s.Messages, err)
	}
	if _, err := o.Compact(t.Context(), id, 9, said("short")); fault.CodeOf(err) != fault.Invalid {
		t.Errorf("more than there are: %v", err)
	}
}

// A write that is larger than a record becomes several records in one batch;
// what fits no record is refused and changes nothing.
func TestLargeWrites(t *testing.T) {
	t.Parallel()
	o := openStore(t, time.Now, transcripts.Options{Messages: 50}, chat.StoreConfig{Event: 8 << 10, Sessions: 2})
	id := create(t, o)
	var many []string
	for i := range 50 {
		many = append(many, fmt.Sprintf("%d %0400d", i, i))
	}
	if ok, err := o.Update(t.Context(), id, transcript.Update{Messages: said(many...)}); !ok || err != nil {
		t.Fatalf("%v %v", ok, err)
	}
	if got := o.rows(t, id); len(got) != 50 || len(o.kinds(t, id)) < 4 {
		t.Errorf("%d rows in %v", len(got), o.kinds(t, id))
	}
	before := o.rows(t, id)
	for what, messages := range map[string][]any{
		"too many": said(append(many, "one more")...),
		"too long": said(fmt.Sprintf("%09000d", 1)),
	} {
		if ok, err := o.Update(t.Context(), id, transcript.Update{Messages: messages}); ok || fault.CodeOf(err) != fault.TooLarge {
			t.Errorf("%s: %v %v", what, ok, err)
		}
	}
	if diff := cmp.Diff(before, o.rows(t, id)); diff != "" {
		t.Errorf("a refused write: %s", diff)
	}
	create(t, o)
	if _, err := o.Create(t.Context(), site, hana, transcript.Create{}); fault.CodeOf(err) != fault.TooLarge {
		t.Errorf("a third session of two: %v", err)
	}
}

// Other surfaces write nothing into a session.
func TestOnlyTheServerWrites(t *testing.T) {
	t.Parallel()
	o := openStore(t, time.Now, transcripts.Options{}, chat.StoreConfig{})
	id := create(t, o)
	for _, kind := range []string{envelope.TypeText, transcripts.TypeAppended, transcripts.TypeStarted} {
		_, err := o.hub.Post(t.Context(), &envelope.Envelope{Channel: o.channelOf(t, id), Sender: o.writer, Type: kind, Data: []byte(`{"rows":[],"text":"x"}`)}, nil)
		if fault.CodeOf(err) != fault.Protocol {
			t.Errorf("%s: %v", kind, err)
		}
	}
}
