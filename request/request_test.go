package request_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/request"
)

var now = time.Date(2025, 1, 2, 3, 4, 5, 0, time.UTC)

func approval(arguments string) *request.Request {
	return &request.Request{
		Kind: request.Approval, Channel: "c", AskedBy: "a", Title: "Run it?", DueAt: now.Add(time.Hour), IfNobodyAnswers: "deny",
		Action: &request.Action{Name: "run", Arguments: []byte(arguments)}, Choices: []request.Choice{{ID: "approve"}, {ID: "deny"}},
	}
}

func TestADigestIsOfWhatTheArgumentsSay(t *testing.T) {
	t.Parallel()
	digest := func(arguments string) string {
		r := approval(arguments)
		if err := r.Prepare(now); err != nil {
			t.Fatal(err)
		}
		return r.Action.Digest
	}
	one := digest(`{"a":1,"b":[true]}`)
	if digest(`{ "b": [true], "a": 1.0 }`) != one {
		t.Error("the same arguments, written otherwise, have another digest")
	}
	for _, other := range []string{`{"a":2,"b":[true]}`, `{}`, ``} {
		if digest(other) == one {
			t.Errorf("%q has the same digest", other)
		}
	}
}

func TestWhatOnlyTheHubSetsIsDropped(t *testing.T) {
	t.Parallel()
	r := approval(`{}`)
	r.ID, r.State, r.Reason = "x", request.Answered, "y"
	r.Answer, r.Similar, r.Action.Digest = &request.Answer{Choice: "approve"}, &request.Similar{}, "sha256:00"
	want := approval(`{}`)
	if err := r.Prepare(now); err != nil {
		t.Fatal(err)
	}
	if err := want.Prepare(now); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, r); diff != "" {
		t.Error(diff)
	}
	text, err := r.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if read, err := request.Decode(text); err != nil || !cmp.Equal(r, read) {
		t.Errorf("read again: %+v, %v", read, err)
	}
}

func TestOutcome(t *testing.T) {
	t.Parallel()
	r := approval(`{}`)
	for want, end := range map[string]request.End{
		"approve": {State: request.Answered, Answer: &request.Answer{Choice: "approve"}},
		"deny":    {State: request.Expired},
		"":        {State: request.Cancelled},
	} {
		if got := r.After(&end).Outcome(); got != want {
			t.Errorf("%s: %q", end.State, got)
		}
	}
	for choice, approves := range map[string]bool{"approve": true, "approve_always": true, "approved": false, "deny": false} {
		if request.Approves(choice) != approves {
			t.Errorf("%s approves: %v", choice, !approves)
		}
	}
	if !request.Denies("deny_always") || request.Denies("denial") {
		t.Error("a denial is deny, or begins with deny_")
	}
}

func TestALargeRequestIsRefused(t *testing.T) {
	t.Parallel()
	r := approval(`{}`)
	r.Body = string(make([]byte, request.MaxBytes))
	if err := r.Prepare(now); fault.CodeOf(err) != fault.TooLarge {
		t.Errorf("got %v", err)
	}
}
