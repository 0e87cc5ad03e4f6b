package v1_test

import (
	"net/url"
	"testing"

	v1 "github.com/parley-hub/parley/client/v1"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/request"
)

func TestARequestIsAskedAwaitedAndAnswered(t *testing.T) {
	t.Parallel()
	base, stop := startHub("alice", "bob")
	t.Cleanup(stop)
	c, err := v1.New(base, v1.Options{})
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	ch, err := c.OpenChannel(ctx, v1.Opening{Type: "conversation", Creator: "alice", Participants: []string{"bob"}})
	if err != nil {
		t.Fatal(err)
	}
	question := v1.Asking{Key: "call-1", Request: v1.Request{
		Kind: request.Approval, Channel: ch.ID, AskedBy: "alice", For: "bob", Title: "Remove it?", Choices: []request.Choice{{ID: "approve"}, {ID: "deny"}},
		Action: &request.Action{Name: "rm", Arguments: []byte(`{"path":"/x"}`)},
	}}
	asked, err := c.Ask(ctx, question)
	if err != nil {
		t.Fatal(err)
	}
	again, err := c.Ask(ctx, question)
	if err != nil || again.ID != asked.ID || asked.Action.Digest == "" {
		t.Fatalf("%+v %v", again, err)
	}
	ended := make(chan *v1.Request)
	go func() {
		got, _ := c.AwaitRequest(ctx, asked.ID)
		ended <- got
	}()
	page, err := c.Requests(ctx, url.Values{"state": {"open"}, "asked_by": {"alice"}})
	if err != nil || len(page.Items) != 1 || page.Names[page.Items[0].For] != "bob" {
		t.Fatalf("%+v %v", page, err)
	}
	if _, err := c.AnswerRequest(ctx, asked.ID, v1.Reply{Choice: "approve", Digest: "sha256:00"}); fault.ReasonOf(err) != fault.DigestDiffers {
		t.Errorf("another digest: %v", err)
	}
	if _, err := c.AnswerRequest(ctx, asked.ID, v1.Reply{Choice: "deny", As: "bob", Digest: asked.Action.Digest}); err != nil {
		t.Fatal(err)
	}
	if got := <-ended; got == nil || got.State != request.Answered || got.Outcome() != "deny" {
		t.Errorf("%+v", got)
	}
	if got, err := c.AwaitRequest(ctx, asked.ID); err != nil || got.Answer.Choice != "deny" {
		t.Errorf("%+v %v", got, err)
	}
	if _, err := c.AwaitRequest(ctx, "none"); fault.CodeOf(err) != fault.NotFound {
		t.Errorf("got %v", err)
	}
}
