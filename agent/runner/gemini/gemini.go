package gemini

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"google.golang.org/genai"

	"github.com/parley-hub/parley/agent/runner"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/message"
	"github.com/parley-hub/parley/message/provider"
	wire "github.com/parley-hub/parley/message/provider/gemini"
	"github.com/parley-hub/parley/message/value"
)

// name is what errors call the provider.
const name = "gemini"

// productionURL is set so that no environment variable replaces it.
const productionURL = "https://generativelanguage.googleapis.com/"

// Options say where the models are.
type Options struct {
	Key runner.Secret
	// BaseURL replaces Google's own.
	BaseURL string
}

// Provider reaches models over generateContent.
type Provider struct{ client *genai.Client }

var _ runner.Provider = (*Provider)(nil)

// New returns a provider of Gemini's models.
func New(ctx context.Context, o Options) (*Provider, error) {
	if o.Key.Reveal() == "" {
		return nil, fault.New(fault.AuthFailed, "Gemini needs a key")
	}
	base := productionURL
	if o.BaseURL != "" {
		if err := runner.CheckBaseURL(o.BaseURL); err != nil {
			return nil, err
		}
		base = strings.TrimSuffix(o.BaseURL, "/") + "/"
	}
	client, err := genai.NewClient(ctx, &genai.ClientConfig{
		APIKey: o.Key.Reveal(), Backend: genai.BackendGeminiAPI, HTTPClient: runner.HTTP(),
		HTTPOptions: genai.HTTPOptions{BaseURL: base}, // without RetryOptions it never retries
	})
	if err != nil {
		return nil, fault.New(fault.Invalid, "Gemini cannot be reached: %s", o.Key.Scrub(err.Error()))
	}
	return &Provider{client}, nil
}

// Send makes one request.
func (p *Provider) Send(ctx context.Context, r *runner.Request, deltas func(message.Envelope)) (provider.Reply, error) {
	body, err := requestBody(r)
	if err != nil {
		return provider.Reply{}, runner.Broken(name, err)
	}
	in := wire.NewStream(r.ReadOptions())
	err = p.read(ctx, r.Model, body, in, deltas)
	return runner.Finished(ctx, name, in.Reply(), failure(err))
}

// requestBody returns the projected request as the SDK takes one.
func requestBody(r *runner.Request) (map[string]any, error) {
	projected := r.AddExtra(wire.Contents(r.Messages, r.Options()).Body.Clone())
	settings := value.MapOrEmpty(projected.At("generationConfig")).Clone()
	if r.MaxTokens > 0 {
		settings.Set("maxOutputTokens", value.Int(r.MaxTokens))
	}
	if r.Temperature != nil {
		settings.Set("temperature", value.Float(*r.Temperature))
	}
	if settings.Len() > 0 {
		projected.Set("generationConfig", settings)
	}
	raw, err := projected.MarshalJSON()
	if err != nil {
		return nil, err
	}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	var body map[string]any
	return body, decoder.Decode(&body)
}

// read passes the chunks of a stream to our reader. The body replaces the one
// that the SDK would write from its own types, which have fewer fields.
func (p *Provider) read(ctx context.Context, model string, body map[string]any, in provider.Stream, deltas func(message.Envelope)) error {
	config := &genai.GenerateContentConfig{HTTPOptions: &genai.HTTPOptions{
		ExtrasRequestProvider: func(map[string]any) map[string]any { return body },
	}}
	placeholder := genai.Text("in the body")
	for chunk, err := range p.client.Models.GenerateContentStream(ctx, model, placeholder, config) {
		if err != nil {
			return err
		}
		chunk.SDKHTTPResponse = nil
		raw, err := json.Marshal(chunk)
		if err != nil {
			return err
		}
		added, err := in.Add(raw)
		if err != nil {
			return err
		}
		for _, delta := range added {
			deltas(delta)
		}
	}
	return nil
}

// failure reads the SDK's errors. Google says in the details how long to wait.
func failure(err error) error {
	var refused genai.APIError
	if !errors.As(err, &refused) {
		return err
	}
	failed := runner.Refused(name, refused.Code, nil, refused.Status, refused.Message, err)
	for _, detail := range refused.Details {
		text, ok := detail["retryDelay"].(string)
		if !ok {
			continue
		}
		if wait, err := time.ParseDuration(text); err == nil && wait > 0 {
			failed.RetryAfter = wait
		}
	}
	return failed
}
