package runner_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/parley-hub/parley/agent"
	"github.com/parley-hub/parley/agent/agenttest"
	"github.com/parley-hub/parley/agent/runner"
	"github.com/parley-hub/parley/agent/runner/anthropic"
	"github.com/parley-hub/parley/agent/runner/gemini"
	"github.com/parley-hub/parley/agent/runner/openai"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/internal/fakeprovider"
)

const key = "sk-test-7f2b91c4d5e6"

// fake starts a provider that plays a script, and checks at the end that it
// was asked all of it and nothing else.
func fake(t *testing.T, script []byte) (*fakeprovider.Server, string) {
	t.Helper()
	server, err := fakeprovider.New(script)
	if err != nil {
		t.Fatal(err)
	}
	listener := httptest.NewServer(server)
	t.Cleanup(func() {
		listener.Close()
		for _, problem := range server.Problems() {
			t.Error(problem)
		}
	})
	return server, listener.URL
}

var providers = map[string]func(ctx context.Context, url string) (runner.Provider, error){
	"openai": func(_ context.Context, url string) (runner.Provider, error) {
		return openai.NewResponses(openai.Options{Key: runner.NewSecret(key), BaseURL: url + "/v1"})
	},
	"openai-compatible": func(_ context.Context, url string) (runner.Provider, error) {
		return openai.NewChat(openai.Options{Key: runner.NewSecret(key), BaseURL: url + "/v1"})
	},
	"anthropic": func(_ context.Context, url string) (runner.Provider, error) {
		return anthropic.New(anthropic.Options{Key: runner.NewSecret(key), BaseURL: url})
	},
	"gemini": func(ctx context.Context, url string) (runner.Provider, error) {
		return gemini.New(ctx, gemini.Options{Key: runner.NewSecret(key), BaseURL: url})
	},
}

// Every provider, over its own SDK and wire format: rate limits, overloads and
// broken streams are retried, a tool is called and its result is sent back
// with what the provider wants verbatim, tokens are counted, and the key is
// never shown.
func TestProviders(t *testing.T) {
	t.Parallel()
	for name, open := range providers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			script, err := os.ReadFile("testdata/" + name + ".txtar")
			if err != nil {
				t.Fatal(err)
			}
			server, url := fake(t, script)
			p, err := open(t.Context(), url)
			if err != nil {
				t.Fatal(err)
			}
			budget, err := runner.NewBudget(t.Context(), runner.Limits{Tokens: 100_000}, runner.Prices{}, nil)
			if err != nil {
				t.Fatal(err)
			}
			var log, seen bytes.Buffer
			shown := ""
			half := 0.5
			model, err := runner.New(p, runner.Options{
				Model: "m", Secret: runner.NewSecret(key), MaxTokens: 100, Temperature: &half, Budget: budget,
				Retry: runner.Retry{First: time.Millisecond},
				Log:   slog.New(slog.NewJSONHandler(&log, nil)),
				Observe: func(_ context.Context, turn *agent.Turn, ev runner.Event) {
					if ev.Reset {
						shown = ""
						return
					}
					text, _ := ev.Delta.Text()
					fmt.Fprintln(&seen, text)
					if ev.Delta.Payload.At("kind") == "text" {
						shown += text
					}
					if turn == nil || turn.Agent.Self().Name != "desk" {
						t.Errorf("the turn is %+v", turn)
					}
				},
			})
			if err != nil {
				t.Fatal(err)
			}
			tides := agent.NewTool("harbour/tides", "The tides.", `{"type":"object","properties":{"harbour":{"type":"string"}}}`,
				func(_ context.Context, _ *agent.Call, in struct {
					Harbour string `json:"harbour"`
				},
				) (any, error) {
					if in.Harbour != "Roscoff" {
						t.Errorf("asked for %q", in.Harbour)
					}
					return "high at noon", nil
				})
			desk := agent.New(agenttest.New().Join("desk"), model, agent.Options{Tools: []*agent.Tool{tides}, NoNetworkTools: true, System: "You are desk."})
			text, err := desk.Ask(t.Context(), "When is it high?")
			if err != nil || text != "High at noon." {
				t.Fatalf("got %q, %v", text, err)
			}
			if shown != "I look.High at noon." || !strings.Contains(seen.String(), "stale") {
				t.Errorf("shown at last %q, of %q", shown, seen.String())
			}
			spent := budget.Spent()
			if spent.Turns != 1 || spent.Tokens < 65 || spent.Tokens > 65+500 {
				t.Errorf("spent %+v", spent)
			}
			_, err = desk.Ask(t.Context(), "Once more.")
			if code := fault.CodeOf(err); code != fault.AuthFailed && code != fault.Invalid || !strings.Contains(err.Error(), "[redacted]") {
				t.Errorf("got %v", err)
			}
			for what, text := range map[string]string{"log": log.String(), "error": fmt.Sprintf("%v %+v", err, err), "deltas": seen.String()} {
				if strings.Contains(text, key) {
					t.Errorf("the key is in the %s: %s", what, text)
				}
			}
			for _, r := range server.Requests() {
				if r.Key != key || bytes.Contains(r.Body, []byte(key)) || strings.Contains(r.Path, key) {
					t.Errorf("the key travels as %q, in %s %s", r.Key, r.Path, r.Body)
				}
			}
		})
	}
}

// A key reaches the provider's own host and no other.
func TestARedirectIsNotFollowed(t *testing.T) {
	t.Parallel()
	for name, open := range providers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			elsewhere, elsewhereURL := fake(t, nil)
			path := map[string]string{
				"openai": "/v1/responses", "openai-compatible": "/v1/chat/completions", "anthropic": "/v1/messages",
				"gemini": "/v1beta/models/m:streamGenerateContent",
			}[name]
			_, url := fake(t, []byte("-- POST "+path+" 307 --\nlocation: "+elsewhereURL+"/take\n\n{}\n"))
			p, err := open(t.Context(), url)
			if err != nil {
				t.Fatal(err)
			}
			model, err := runner.New(p, runner.Options{Model: "m"})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := model.Respond(t.Context(), &agent.Prompt{Messages: []agent.Message{{Role: agent.User, Text: "hi"}}}); err == nil || !strings.Contains(err.Error(), "redirect") {
				t.Errorf("got %v", err)
			}
			if n := len(elsewhere.Requests()); n != 0 {
				t.Errorf("%d requests went elsewhere", n)
			}
		})
	}
}

func TestWhatAProviderNeeds(t *testing.T) {
	t.Parallel()
	_, responsesErr := openai.NewResponses(openai.Options{})
	_, anthropicErr := anthropic.New(anthropic.Options{})
	_, geminiErr := gemini.New(t.Context(), gemini.Options{})
	for _, err := range []error{responsesErr, anthropicErr, geminiErr} {
		if fault.CodeOf(err) != fault.AuthFailed {
			t.Errorf("without a key: %v", err)
		}
	}
	for _, url := range []string{"", "models.example.org", "ftp://h/", "https://me:pw@h/", "https://h/?key=x", "https://", ":"} {
		if _, err := openai.NewChat(openai.Options{BaseURL: url}); fault.CodeOf(err) != fault.Invalid {
			t.Errorf("%q: %v", url, err)
		}
	}
}
