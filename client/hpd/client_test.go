package hpd_test

import (
	"context"
	"net/url"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-hub/parley/client/hpd"
	"github.com/parley-hub/parley/dialect/hpd/wire"
	"github.com/parley-hub/parley/fault"
)

func TestSessionsAndBranches(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	ctx := t.Context()
	id := "team/one"
	if _, err := r.client.CreateSession(ctx, wire.CreateSession{SessionID: &id, Metadata: map[string]wire.Raw{"n": wire.Raw("5")}}); err != nil {
		t.Fatal(err)
	}
	list, _, err := r.client.Sessions(ctx, url.Values{"limit": {"10"}})
	if err != nil || len(list) != 1 || list[0].ID != id || string(list[0].Metadata["n"]) != "5" {
		t.Fatalf("sessions: %+v (%v)", list, err)
	}
	at := wire.Scope{Session: id, Branch: "main"}
	r.produce(hpd.Producer{Agent: "far", Do: func(ctx context.Context, run *hpd.Run) error { return say(ctx, run, "hi") }})
	input(t, r, at, "hello")
	r.until(at, "BRANCH_RUN_COMPLETED")
	to := "tone/b"
	from := "m"
	made, _, err := r.client.Fork(ctx, at, wire.ForkBranch{NewBranchID: &to, FromMessageID: &from})
	if err != nil || made.ID != to || made.MessageCount != 2 {
		t.Fatalf("fork: %+v (%v)", made, err)
	}
	fork := wire.Scope{Session: id, Branch: to}
	got, _, err := r.client.Branch(ctx, fork)
	if err != nil || got.ForkedFrom == nil || *got.ForkedFrom != "main" {
		t.Errorf("branch: %+v (%v)", got, err)
	}
	branches, _, err := r.client.Branches(ctx, id)
	if err != nil || len(branches) != 2 {
		t.Errorf("branches: %+v (%v)", branches, err)
	}
	count := 0
	if err := r.client.History(ctx, fork, "2", func(jsontext.Value) error { count++; return nil }); err != nil || count == 0 {
		t.Errorf("history: %d events (%v)", count, err)
	}
	if err := r.client.DeleteBranch(ctx, fork, false); err != nil {
		t.Error(err)
	}
	if err := r.client.DeleteBranch(ctx, at, false); fault.CodeOf(err) != fault.Invalid {
		t.Errorf("deletion of main: %v", err)
	}
	// A reader of a session that is deleted ends.
	watching := make(chan error, 1)
	seen := make(chan struct{}, 1000)
	go func() {
		watching <- r.client.Follow(ctx, at, "", func(string, jsontext.Value) error { seen <- struct{}{}; return nil })
	}()
	<-seen
	if err := r.client.DeleteSession(ctx, id); err != nil {
		t.Fatal(err)
	}
	if err := <-watching; fault.CodeOf(err) != fault.NotFound {
		t.Errorf("the reader ended with %v", err)
	}
	if err := r.client.History(ctx, at, "", func(jsontext.Value) error { return nil }); fault.CodeOf(err) != fault.NotFound {
		t.Errorf("history of a deleted session: %v", err)
	}
}
