package openai

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"

	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/responses"

	"github.com/parley-hub/parley/agent/runner"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/message"
	"github.com/parley-hub/parley/message/provider"
	wire "github.com/parley-hub/parley/message/provider/openai"
	"github.com/parley-hub/parley/message/value"
)

// name is what errors call the provider.
const name = "openai"

// Options say where the models are.
type Options struct {
	Key runner.Secret
	// BaseURL replaces OpenAI's own.
	BaseURL string
}

func (o Options) request() ([]option.RequestOption, error) {
	list := []option.RequestOption{
		option.WithEnvironmentProduction(), option.WithHTTPClient(runner.HTTP()), option.WithMaxRetries(0),
	}
	if o.BaseURL != "" {
		if err := runner.CheckBaseURL(o.BaseURL); err != nil {
			return nil, err
		}
		list = append(list, option.WithBaseURL(o.BaseURL))
	}
	if key := o.Key.Reveal(); key != "" {
		list = append(list, option.WithAPIKey(key))
	}
	return list, nil
}

// Responses reaches models over the responses interface.
type Responses struct{ service responses.ResponseService }

// Chat reaches models over chat completions, which many servers speak.
type Chat struct{ service sdk.ChatCompletionService }

var (
	_ runner.Provider = (*Responses)(nil)
	_ runner.Provider = (*Chat)(nil)
)

// NewResponses returns a provider of OpenAI's own models.
func NewResponses(o Options) (*Responses, error) {
	if o.Key.Reveal() == "" {
		return nil, fault.New(fault.AuthFailed, "OpenAI needs a key")
	}
	list, err := o.request()
	if err != nil {
		return nil, err
	}
	return &Responses{responses.NewResponseService(list...)}, nil
}

// NewChat returns a provider for a server that speaks chat completions. Some need no key.
func NewChat(o Options) (*Chat, error) {
	if o.BaseURL == "" {
		return nil, fault.New(fault.Invalid, "a server that is compatible with OpenAI needs a base URL, such as http://127.0.0.1:8000/v1")
	}
	list, err := o.request()
	if err != nil {
		return nil, err
	}
	return &Chat{sdk.NewChatCompletionService(list...)}, nil
}

// Send makes one request.
func (p *Responses) Send(ctx context.Context, r *runner.Request, deltas func(message.Envelope)) (provider.Reply, error) {
	body := r.Body(wire.Responses(r.Messages, r.Options()))
	limit(body, r, "max_output_tokens")
	raw, err := body.MarshalJSON()
	if err != nil {
		return provider.Reply{}, runner.Broken(name, err)
	}
	params := param.Override[responses.ResponseNewParams](json.RawMessage(raw))
	in := wire.NewResponsesStream(r.ReadOptions())
	stream := p.service.NewStreaming(ctx, params)
	err = runner.Read(stream, func() string { return stream.Current().RawJSON() }, in, deltas)
	return runner.Finished(ctx, name, in.Reply(), failure(err))
}

// Send makes one request.
func (p *Chat) Send(ctx context.Context, r *runner.Request, deltas func(message.Envelope)) (provider.Reply, error) {
	body := r.Body(wire.Chat(r.Messages, r.Options()))
	limit(body, r, "max_tokens")
	body.Set("stream_options", value.New().Set("include_usage", true))
	raw, err := body.MarshalJSON()
	if err != nil {
		return provider.Reply{}, runner.Broken(name, err)
	}
	params := param.Override[sdk.ChatCompletionNewParams](json.RawMessage(raw))
	in := wire.NewChatStream(r.ReadOptions())
	stream := p.service.NewStreaming(ctx, params)
	err = runner.Read(stream, func() string { return stream.Current().RawJSON() }, in, deltas)
	return runner.Finished(ctx, name, in.Reply(), failure(err))
}

func limit(body *value.Map, r *runner.Request, key string) {
	if r.MaxTokens > 0 {
		body.Set(key, value.Int(r.MaxTokens))
	}
	if r.Temperature != nil {
		body.Set("temperature", value.Float(*r.Temperature))
	}
}

// failure reads the SDK's errors.
func failure(err error) error {
	var refused *sdk.Error
	if !errors.As(err, &refused) {
		return err
	}
	code := cmp.Or(refused.Code, refused.Type)
	failed := runner.Refused(name, refused.StatusCode, nil, code, refused.Message, err)
	if refused.Response != nil {
		failed = runner.Refused(name, refused.StatusCode, refused.Response.Header, code, refused.Message, err)
	}
	return failed
}
