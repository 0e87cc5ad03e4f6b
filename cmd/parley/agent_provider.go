package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/parley-hub/parley/agent/runner"
	"github.com/parley-hub/parley/agent/runner/anthropic"
	"github.com/parley-hub/parley/agent/runner/gemini"
	"github.com/parley-hub/parley/agent/runner/openai"
	"github.com/parley-hub/parley/message/value"
)

// providerFlags are the flags for a model and its provider.
type providerFlags struct {
	name, model, baseURL string
	keyEnv, keyFile      string
	maxTokens            int64
	temperature          float64
	parameters           []string
	timeout              time.Duration
	attempts             int
	flags                *pflag.FlagSet
}

// keyVariables are the variables that may have the providers' keys.
var keyVariables = map[string][]string{
	"openai":            {"OPENAI_API_KEY"},
	"anthropic":         {"ANTHROPIC_API_KEY"},
	"gemini":            {"GEMINI_API_KEY", "GOOGLE_API_KEY"},
	"openai-compatible": {"OPENAI_COMPATIBLE_API_KEY"},
}

func (f *providerFlags) add(flags *pflag.FlagSet) {
	f.flags = flags
	flags.StringVar(&f.name, "provider", "", "`PROVIDER` of the model: openai, anthropic, gemini or openai-compatible")
	flags.StringVar(&f.model, "model", "", "`MODEL` to ask, by its name at the provider")
	flags.StringVar(&f.baseURL, "base-url", "", "`URL` of the provider, in place of its own")
	flags.StringVar(&f.keyEnv, "key-env", "", "environment `variable` with the provider's key")
	flags.StringVar(&f.keyFile, "key-file", "", "`FILE` with the provider's key")
	flags.Int64Var(&f.maxTokens, "max-tokens", 0, "most `tokens` of one reply (default the provider's; 8192 for anthropic)")
	flags.Float64Var(&f.temperature, "temperature", 0, "sampling `temperature` (default the provider's)")
	flags.StringArrayVar(&f.parameters, "param", nil, "another key of the request's body, as `key=JSON`; may be repeated")
	flags.DurationVar(&f.timeout, "timeout", 10*time.Minute, "`time` after which a request is given up and made again")
	flags.IntVar(&f.attempts, "attempts", 5, "how `often` a request is made at most")
}

// providerKey reads the provider's key, from the environment or a file.
func (a *app) providerKey(f *providerFlags) (runner.Secret, error) {
	known, ok := keyVariables[f.name]
	switch {
	case !ok:
		return runner.Secret{}, usageError("--provider %q is unknown; it is openai, anthropic, gemini or openai-compatible", f.name)
	case f.keyEnv != "" && f.keyFile != "":
		return runner.Secret{}, usageError("give --key-env or --key-file, not both")
	case f.keyFile != "":
		raw, err := a.read(f.keyFile)
		if err != nil {
			return runner.Secret{}, err
		}
		return checkedKey(string(raw), f.keyFile)
	case f.keyEnv != "":
		key := lookup(a.environ, f.keyEnv)
		if key == "" {
			return runner.Secret{}, usageError("--key-env: %s is not set", f.keyEnv)
		}
		return checkedKey(key, f.keyEnv)
	}
	for _, variable := range known {
		if key := lookup(a.environ, variable); key != "" {
			return checkedKey(key, variable)
		}
	}
	if f.name == "openai-compatible" {
		return runner.Secret{}, nil // many private servers need none
	}
	return runner.Secret{}, usageError("%s needs a key: set %s, or name a file with --key-file", f.name, known[0])
}

// checkedKey refuses a key that cannot be sent in a header, without showing it.
func checkedKey(text, from string) (runner.Secret, error) {
	key := strings.TrimSpace(text)
	if key == "" || strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return runner.Secret{}, usageError("%s must hold one key and nothing else", from)
	}
	return runner.NewSecret(key), nil
}

// open connects to the provider.
func (f *providerFlags) open(ctx context.Context, key runner.Secret) (runner.Provider, error) {
	switch f.name {
	case "openai":
		return openai.NewResponses(openai.Options{Key: key, BaseURL: f.baseURL})
	case "anthropic":
		return anthropic.New(anthropic.Options{Key: key, BaseURL: f.baseURL})
	case "gemini":
		return gemini.New(ctx, gemini.Options{Key: key, BaseURL: f.baseURL})
	}
	return openai.NewChat(openai.Options{Key: key, BaseURL: f.baseURL})
}

// options returns the options of requests to the model.
func (f *providerFlags) options(key runner.Secret) (runner.Options, error) {
	if f.attempts < 1 || f.timeout <= 0 || f.maxTokens < 0 {
		return runner.Options{}, usageError("--attempts and --timeout must be more than 0, and --max-tokens not less")
	}
	o := runner.Options{
		Model: f.model, Secret: key, MaxTokens: f.maxTokens, Timeout: f.timeout, Retry: runner.Retry{Attempts: f.attempts},
	}
	if f.flags.Changed("temperature") {
		o.Temperature = &f.temperature
	}
	for _, pair := range f.parameters {
		name, text, ok := strings.Cut(pair, "=")
		if !ok || name == "" {
			return o, usageError("--param is a key and a JSON value, such as --param top_p=0.9")
		}
		v, err := value.Decode([]byte(text))
		if err != nil {
			return o, usageError("--param %s: %v; a text is written with its quotes", name, err)
		}
		if o.Extra == nil {
			o.Extra = value.New()
		}
		o.Extra.Set(name, v)
	}
	return o, nil
}

// budgetFlags are the flags for what may be spent.
type budgetFlags struct {
	tokens, turns            int64
	money, priceIn, priceOut string
	wall                     time.Duration
	file                     string
}

func (f *budgetFlags) add(flags *pflag.FlagSet) {
	f.addLimits(flags)
	flags.StringVar(&f.file, "budget-file", "", "`FILE` that keeps what was spent, in place of the hub; agents that are delegated to do not spend from it")
}

func (f *budgetFlags) addLimits(flags *pflag.FlagSet) {
	flags.Int64Var(&f.tokens, "budget-tokens", 0, "most `tokens` that may be used in all")
	flags.StringVar(&f.money, "budget-money", "", "most `dollars` that may be spent in all; needs the prices")
	flags.Int64Var(&f.turns, "budget-turns", 0, "most `turns` that may be taken")
	flags.DurationVar(&f.wall, "budget-time", 0, "`time` from the first turn until no other is taken")
	flags.StringVar(&f.priceIn, "price-input", "", "`dollars` for a million tokens that the model reads")
	flags.StringVar(&f.priceOut, "price-output", "", "`dollars` for a million tokens that the model writes")
}

// limits reads the flags.
func (f *budgetFlags) limits() (limits runner.Limits, prices runner.Prices, err error) {
	limits = runner.Limits{Tokens: f.tokens, Turns: f.turns, WallTime: f.wall}
	for flag, amount := range map[string]struct {
		text string
		into *runner.Money
	}{
		"budget-money": {f.money, &limits.Money}, "price-input": {f.priceIn, &prices.Input}, "price-output": {f.priceOut, &prices.Output},
	} {
		if amount.text == "" {
			continue
		}
		m, err := runner.ParseMoney(amount.text)
		if err != nil {
			return limits, prices, usageError("--%s: %v", flag, err)
		}
		*amount.into = m
	}
	if limits.Money > 0 && (f.priceIn == "" || f.priceOut == "") {
		return limits, prices, usageError("--budget-money needs --price-input and --price-output")
	}
	if err := limits.Check(prices); err != nil {
		return limits, prices, usageError("budget: %v", err)
	}
	return limits, prices, nil
}

// open opens the budget in a file, with what was spent before.
func (f *budgetFlags) open(ctx context.Context) (*runner.Budget, error) {
	limits, prices, err := f.limits()
	if err != nil {
		return nil, err
	}
	if info, err := os.Stat(f.file); err == nil && info.IsDir() {
		return nil, usageError("--budget-file: %s is a folder", f.file)
	}
	budget, err := runner.NewBudget(ctx, limits, prices, runner.FileLedger(f.file))
	if err != nil {
		return nil, fmt.Errorf("budget: %w", err)
	}
	return budget, nil
}
