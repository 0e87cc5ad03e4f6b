// Package hosted runs agent definitions in the hub's own process: each answers
// with a provider's model, as parley agent run does. It spends money, so it is off
// unless agents.hosted says otherwise.
package hosted

import (
	"cmp"
	"context"
	"log/slog"
	"strings"
	"sync"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-hub/parley/agent"
	"github.com/parley-hub/parley/agent/runner"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/server/budget"
)

// Config says how definitions are run.
type Config struct {
	// Open connects to a provider by its name; endpoint is empty or a URL of
	// its own.
	Open func(ctx context.Context, name, endpoint string) (runner.Provider, runner.Secret, error)
	// Budgets keeps what definitions may spend and have spent, each as a document under
	// the definition's id. Nil, or no limit, lets them spend.
	Budgets *budget.Store
	Limits  budget.Limits // of each definition in all
	Prices  runner.Prices // of whatever model it asks
	Runs    int           // agents.runs: runs at once
	Log     *slog.Logger
}

// Host runs definitions.
type Host struct {
	cfg   Config
	slots chan struct{}

	mu      sync.Mutex
	limited map[string]bool // definitions whose budget is set
}

// New makes a host.
func New(cfg Config) *Host {
	cfg.Log = cmp.Or(cfg.Log, slog.Default())
	return &Host{cfg: cfg, slots: make(chan struct{}, max(cfg.Runs, 1)), limited: map[string]bool{}}
}

// Definition is what is run.
type Definition struct {
	ID     string
	Config jsontext.Value // as HPD clients write it
}

// settings are the members of a definition's config that are read; others are the
// client's own.
type settings struct {
	System   string `json:"systemInstructions"`
	Provider struct {
		Key      string `json:"providerKey"`
		Model    string `json:"modelName"`
		Endpoint string `json:"endpoint"`
	} `json:"provider"`
	Chat chatOptions `json:"chat"`
}

type chatOptions struct {
	Temperature *float64 `json:"temperature"`
	MaxTokens   int64    `json:"maxOutputTokens"`
}

// overrides are what a run may change of its definition. The sender of an input must
// not choose the provider, the key or the endpoint.
type overrides struct {
	Additional string      `json:"additionalSystemInstructions"`
	Chat       chatOptions `json:"chat"`
}

// providers are other names under which clients know a provider.
var providers = map[string]string{"google": "gemini", "googleai": "gemini", "openai_compatible": "openai-compatible"}

// sink receives a model's output while it arrives.
type sink struct {
	delta func(text string)
	reset func()
}

// answer returns the answer of a definition's model to a conversation.
func (h *Host) answer(ctx context.Context, d Definition, runConfig jsontext.Value, said []agent.Message, to sink) (string, error) {
	var set settings
	if err := json.Unmarshal(d.Config, &set); err != nil {
		return "", fault.New(fault.Invalid, "the definition's config cannot be read: %v", err)
	}
	name := strings.ToLower(set.Provider.Key)
	if other, ok := providers[name]; ok {
		name = other
	}
	if name == "" || set.Provider.Model == "" {
		return "", fault.New(fault.Invalid, "the definition names no model; its config needs provider.providerKey and provider.modelName")
	}
	var more overrides
	if len(runConfig) > 0 {
		if err := json.Unmarshal(runConfig, &more); err != nil {
			return "", fault.New(fault.Invalid, "runConfig cannot be read; chat has temperature and maxOutputTokens as numbers")
		}
	}
	select {
	case h.slots <- struct{}{}:
		defer func() { <-h.slots }()
	default:
		return "", fault.New(fault.Unavailable, "%d definitions are running, which is the limit (agents.runs); try again", cap(h.slots))
	}
	provider, secret, err := h.cfg.Open(ctx, name, set.Provider.Endpoint)
	if err != nil {
		return "", err
	}
	purse, err := h.purse(ctx, d.ID)
	if err != nil {
		return "", err
	}
	chat := set.Chat.with(more.Chat)
	options := runner.Options{
		Model: set.Provider.Model, Secret: secret, MaxTokens: chat.MaxTokens, Temperature: chat.Temperature, Log: h.cfg.Log,
		Observe: func(_ context.Context, _ *agent.Turn, ev runner.Event) {
			if ev.Reset {
				to.reset()
				return
			}
			if text := ev.Says(); text != "" {
				to.delta(text)
			}
		},
	}
	if purse != nil {
		options.Budget = purse
	}
	model, err := runner.New(provider, options)
	if err != nil {
		return "", err
	}
	system := strings.TrimSpace(set.System + "\n\n" + more.Additional)
	reply, err := model.Respond(ctx, &agent.Prompt{System: system, Messages: said, Turn: &agent.Turn{}})
	if err != nil {
		return "", err
	}
	return reply.Text, nil
}

// with returns a definition's options with those of a run, which can only be
// stricter.
func (o chatOptions) with(run chatOptions) chatOptions {
	if run.Temperature != nil {
		o.Temperature = run.Temperature
	}
	if run.MaxTokens > 0 && (o.MaxTokens == 0 || run.MaxTokens < o.MaxTokens) {
		o.MaxTokens = run.MaxTokens
	}
	return o
}
