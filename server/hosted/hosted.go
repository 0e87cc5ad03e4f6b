// Package hosted runs agent definitions in the hub's own process: each answers
// with a provider's model, as parley agent run does. It spends money, so it is off
// unless agents.hosted says otherwise.
package hosted

import (
	"context"
	"log/slog"
	"strings"
	"sync"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-hub/parley/agent"
	"github.com/parley-hub/parley/agent/runner"
	"github.com/parley-hub/parley/fault"
)

// Config says how definitions are run.
type Config struct {
	// Open reaches a provider by its name; endpoint is empty or a URL of its own.
	Open func(ctx context.Context, name, endpoint string) (runner.Provider, runner.Secret, error)
	// Ledger keeps what a definition has spent; nil forgets it with the process.
	Ledger func(definition string) runner.Ledger
	Runs   int   // agents.runs: runs at once
	Tokens int64 // agents.tokens: of each definition in all; 0 is without limit
	Log    *slog.Logger
}

// Host runs definitions.
type Host struct {
	cfg   Config
	slots chan struct{}

	mu      sync.Mutex
	budgets map[string]*runner.Budget // by definition, where there is a limit
}

// New makes a host.
func New(cfg Config) *Host {
	if cfg.Log == nil {
		cfg.Log = slog.Default()
	}
	return &Host{cfg: cfg, slots: make(chan struct{}, max(cfg.Runs, 1)), budgets: map[string]*runner.Budget{}}
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

// overrides are what a run may change of its definition. Who asks, with which key
// and where, is not for those who send inputs to say.
type overrides struct {
	Additional string      `json:"additionalSystemInstructions"`
	Chat       chatOptions `json:"chat"`
}

// providers are other names that clients know a provider by.
var providers = map[string]string{"google": "gemini", "googleai": "gemini", "openai_compatible": "openai-compatible"}

// sink takes what a model says while it says it.
type sink struct {
	delta func(text string)
	reset func()
}

// answer has a definition's model answer a conversation.
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
		return "", fault.New(fault.Unavailable, "%d definitions are running, as many as may (agents.runs); try again", cap(h.slots))
	}
	provider, secret, err := h.cfg.Open(ctx, name, set.Provider.Endpoint)
	if err != nil {
		return "", err
	}
	budget, err := h.budget(ctx, d.ID)
	if err != nil {
		return "", err
	}
	chat := set.Chat.with(more.Chat)
	model, err := runner.New(provider, runner.Options{
		Model: set.Provider.Model, Secret: secret, MaxTokens: chat.MaxTokens, Temperature: chat.Temperature, Budget: budget, Log: h.cfg.Log,
		Observe: func(_ context.Context, _ *agent.Turn, ev runner.Event) {
			if ev.Reset {
				to.reset()
				return
			}
			if text, ok := ev.Delta.Text(); ok && text != "" {
				to.delta(text)
			}
		},
	})
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

// with is a definition's options with a run's: it may ask for less, not for more.
func (o chatOptions) with(run chatOptions) chatOptions {
	if run.Temperature != nil {
		o.Temperature = run.Temperature
	}
	if run.MaxTokens > 0 && (o.MaxTokens == 0 || run.MaxTokens < o.MaxTokens) {
		o.MaxTokens = run.MaxTokens
	}
	return o
}

// budget is what a definition may spend; all its runs share it.
func (h *Host) budget(ctx context.Context, id string) (*runner.Budget, error) {
	if h.cfg.Tokens == 0 {
		return nil, nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if b := h.budgets[id]; b != nil {
		return b, nil
	}
	var ledger runner.Ledger
	if h.cfg.Ledger != nil {
		ledger = h.cfg.Ledger(id)
	}
	b, err := runner.NewBudget(ctx, runner.Limits{Tokens: h.cfg.Tokens}, runner.Prices{}, ledger)
	if err == nil {
		h.budgets[id] = b
	}
	return b, err
}
