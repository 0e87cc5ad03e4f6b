package runner_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/parley-hub/parley/agent"
	"github.com/parley-hub/parley/agent/runner"
	"github.com/parley-hub/parley/message"
	"github.com/parley-hub/parley/message/provider"
	"github.com/parley-hub/parley/message/value"
)

func TestASecretPrintsAsNothing(t *testing.T) {
	t.Parallel()
	s := runner.NewSecret(" sk-123456789\n")
	holder := struct{ Key runner.Secret }{s}
	for _, text := range []string{fmt.Sprint(s), fmt.Sprintf("%#v", s), fmt.Sprintf("%+v", holder), fmt.Sprintf("%x", s), s.LogValue().String(), s.Scrub("key sk-123456789!")} {
		if strings.Contains(text, "123456789") || !strings.Contains(text, "[redacted]") {
			t.Errorf("it prints as %s", text)
		}
	}
	if s.Reveal() != "sk-123456789" {
		t.Error("the key is lost")
	}
}

// streaming is a provider whose reply comes in fragments of a text, and calls tools.
type streaming struct {
	fragments []message.Envelope
	reply     provider.Reply
}

func (s streaming) Send(_ context.Context, _ *runner.Request, deltas func(message.Envelope)) (provider.Reply, error) {
	for _, f := range s.fragments {
		deltas(f)
	}
	return s.reply, nil
}

// watched returns what is seen of a reply while it comes, and the reply.
func watched(t *testing.T, p streaming) (says string, whole *agent.Response) {
	t.Helper()
	p.reply.Finish = provider.FinishStop
	model, err := runner.New(p, runner.Options{Model: "m", Secret: runner.NewSecret(key), Observe: func(_ context.Context, _ *agent.Turn, ev runner.Event) {
		says += ev.Says()
	}})
	if err != nil {
		t.Fatal(err)
	}
	if whole, err = model.Respond(t.Context(), hello()); err != nil {
		t.Fatal(err)
	}
	return says, whole
}

func spoken(text string) message.Envelope {
	return message.Envelope{Type: message.TypeText, Role: message.RoleAssistant, Content: text, Payload: value.New(), Metadata: value.New()}
}

// A key that a provider repeats is removed, however it is cut into fragments,
// and no other text is lost.
func TestAKeyInPiecesIsNotShown(t *testing.T) {
	t.Parallel()
	said := "I am " + key + ", am I? sk"
	for cut := range len(said) {
		for _, second := range []int{cut, min(cut+3, len(said)), len(said)} {
			fragments := []string{said[:cut], said[cut:second], said[second:]}
			p := streaming{}
			for _, f := range fragments {
				p.fragments = append(p.fragments, provider.Delta(provider.DeltaText, 0, f, "", ""))
				p.reply.Messages = append(p.reply.Messages, spoken(f))
			}
			says, whole := watched(t, p)
			if want := "I am [redacted], am I? sk"; says != want || whole.Text != want {
				t.Fatalf("%q: shown %q, said %q", fragments, says, whole.Text)
			}
		}
	}
	call := message.Envelope{
		Type: message.TypeToolCall, Role: message.RoleAssistant,
		Payload: value.New().Set("tool_name", "x"+key).Set("parameters", value.New().Set("a", key)), Metadata: value.New().Set("tool_call_id", "c-"+key),
	}
	_, whole := watched(t, streaming{reply: provider.Reply{Messages: []message.Envelope{call}}})
	if got := fmt.Sprint(whole.Calls); strings.Contains(got, key) || strings.Count(got, "[redacted]") != 3 {
		t.Errorf("it calls %s", got)
	}
}

// Reasoning and arguments of tool calls are not part of what a model says.
func TestOnlyWhatIsSaidIsShown(t *testing.T) {
	t.Parallel()
	says, _ := watched(t, streaming{fragments: []message.Envelope{
		provider.Delta(provider.DeltaReasoning, 0, "Shall I tell ines? ", "", ""),
		provider.Delta(provider.DeltaText, 1, "One ", "", ""),
		provider.Delta(provider.DeltaToolCall, 2, "", "say", "c-1"),
		provider.Delta(provider.DeltaToolCall, 2, `{"audience":["ines"],"content":"psst"}`, "", ""),
		provider.Delta(provider.DeltaText, 3, "moment.", "", ""),
		provider.Delta(provider.DeltaRefusal, 4, " No.", "", ""),
	}})
	if says != "One moment. No." {
		t.Errorf("shown %q", says)
	}
}

// A key in an error is removed before the error is cut to its size.
func TestAKeyAtTheEndOfAnErrorIsNotShown(t *testing.T) {
	t.Parallel()
	for before := 900; before < 1100; before += 3 {
		model, _ := newModel(t, runner.Options{Secret: runner.NewSecret(key)}, func(context.Context, *runner.Request) (provider.Reply, error) {
			return provider.Reply{}, runner.Refused("test", http.StatusBadRequest, nil, "", strings.Repeat("é", before/2)+key, nil)
		})
		_, err := model.Respond(t.Context(), hello())
		if err == nil || strings.Contains(err.Error(), key[:shortest]) || !utf8.ValidString(err.Error()) {
			t.Fatalf("behind %d bytes: %v", before, err)
		}
	}
}

// shortest is how much of a key would be found.
const shortest = 8
