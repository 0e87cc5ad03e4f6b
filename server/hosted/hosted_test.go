package hosted_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/parley-hub/parley/agent/runner"
	"github.com/parley-hub/parley/dialect/hpd/wire"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/message"
	messages "github.com/parley-hub/parley/message/chat"
	"github.com/parley-hub/parley/message/provider"
	"github.com/parley-hub/parley/message/value"
	"github.com/parley-hub/parley/server/hosted"
)

// answering is a provider made of a function.
type answering func(ctx context.Context, r *runner.Request, deltas func(message.Envelope)) (provider.Reply, error)

func (f answering) Send(ctx context.Context, r *runner.Request, deltas func(message.Envelope)) (provider.Reply, error) {
	return f(ctx, r, deltas)
}

func hostOf(p runner.Provider, runs int) *hosted.Host {
	return hosted.New(hosted.Config{
		Runs: runs, Log: slog.New(slog.DiscardHandler),
		Open: func(context.Context, string, string) (runner.Provider, runner.Secret, error) {
			return p, runner.Secret{}, nil
		},
	})
}

func definition(config string) wire.StoredAgent {
	return wire.StoredAgent{AgentSummary: wire.AgentSummary{ID: "d-1", Name: "desk"}, Config: wire.Raw(config)}
}

const desk = `{"systemInstructions":"Be brief.","provider":{"providerKey":"anthropic","modelName":"m"},"chat":{"maxOutputTokens":100}}`

func text(role, content string) message.Envelope {
	return message.Envelope{Type: message.TypeText, Role: role, Content: content, Payload: value.New(), Metadata: value.New()}
}

func ask(h *hosted.Host, config string, delta func(string)) (any, error) {
	turn := messages.Turn{Agent: "d-1", Messages: []message.Envelope{text("user", "one"), text("assistant", "two"), text("user", "three")}}
	return h.Chat(definition(config)).Answer(context.Background(), turn, delta, func() { delta("<reset>") })
}

// A definition's model gets its instructions, its limits and the conversation, and
// what it says is shown while it comes, without what it thinks.
func TestADefinitionAnswers(t *testing.T) {
	t.Parallel()
	var asked *runner.Request
	h := hostOf(answering(func(_ context.Context, r *runner.Request, deltas func(message.Envelope)) (provider.Reply, error) {
		asked = r
		deltas(provider.Delta(provider.DeltaReasoning, 0, "Two and two?", "", ""))
		deltas(text("assistant", "fo"))
		deltas(text("assistant", "ur"))
		return provider.Reply{Messages: []message.Envelope{text("assistant", "four")}}, nil
	}), 1)
	shown := ""
	got, err := ask(h, desk, func(s string) { shown += s })
	if err != nil {
		t.Fatal(err)
	}
	answer, _ := value.Append(nil, got)
	if !strings.Contains(string(answer), `"content":"four"`) || shown != "four" {
		t.Errorf("answered %s, shown %q", answer, shown)
	}
	var said []string
	for _, m := range asked.Messages {
		content, _ := m.Text()
		said = append(said, m.Role+": "+content)
	}
	if want := "system: Be brief.|user: one|assistant: two|user: three"; strings.Join(said, "|") != want || asked.MaxTokens != 100 || asked.Model != "m" {
		t.Errorf("asked %q with %d tokens of %s", strings.Join(said, "|"), asked.MaxTokens, asked.Model)
	}
}

func TestDefinitionsThatCannotBeRun(t *testing.T) {
	t.Parallel()
	h := hostOf(answering(func(context.Context, *runner.Request, func(message.Envelope)) (provider.Reply, error) {
		return provider.Reply{}, errors.New("nobody should ask")
	}), 1)
	for config, want := range map[string]string{
		`{}`:                                    "needs provider.providerKey and provider.modelName",
		`{"provider":{"providerKey":"openai"}}`: "needs provider.providerKey and provider.modelName",
		`{"provider":7}`:                        "config cannot be read",
	} {
		if _, err := ask(h, config, func(string) {}); fault.CodeOf(err) != fault.Invalid || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", config, err)
		}
	}
}

// No more run at once than may.
func TestRunsAreBounded(t *testing.T) {
	t.Parallel()
	begun, end := make(chan struct{}), make(chan struct{})
	h := hostOf(answering(func(context.Context, *runner.Request, func(message.Envelope)) (provider.Reply, error) {
		close(begun)
		<-end
		return provider.Reply{Messages: []message.Envelope{text("assistant", "done")}}, nil
	}), 1)
	first := make(chan error, 1)
	go func() {
		_, err := ask(h, desk, func(string) {})
		first <- err
	}()
	<-begun
	if _, err := ask(h, desk, func(string) {}); fault.CodeOf(err) != fault.Unavailable || !strings.Contains(err.Error(), "agents.runs") {
		t.Errorf("a second: %v", err)
	}
	close(end)
	if err := <-first; err != nil {
		t.Error(err)
	}
}
