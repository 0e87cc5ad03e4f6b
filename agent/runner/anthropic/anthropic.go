package anthropic

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"

	sdk "github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"
	"github.com/anthropics/anthropic-sdk-go/packages/param"

	"github.com/parley-hub/parley/agent/runner"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/message"
	"github.com/parley-hub/parley/message/provider"
	wire "github.com/parley-hub/parley/message/provider/anthropic"
	"github.com/parley-hub/parley/message/value"
)

const (
	// name is what errors call the provider.
	name = "anthropic"
	// DefaultMaxTokens bounds a reply where nothing else does: Anthropic's
	// interface requires a bound.
	DefaultMaxTokens = 8192
)

// Options say where the models are.
type Options struct {
	Key runner.Secret
	// BaseURL replaces Anthropic's own.
	BaseURL string
}

// Provider reaches models over the messages interface.
type Provider struct{ service sdk.MessageService }

var _ runner.Provider = (*Provider)(nil)

// New returns a provider of Anthropic's models.
func New(o Options) (*Provider, error) {
	if o.Key.Reveal() == "" {
		return nil, fault.New(fault.AuthFailed, "Anthropic needs a key")
	}
	list := []option.RequestOption{
		option.WithoutEnvironmentDefaults(), option.WithEnvironmentProduction(), option.WithoutOpenTelemetry(),
		option.WithHTTPClient(runner.HTTP()), option.WithMaxRetries(0), option.WithAPIKey(o.Key.Reveal()),
	}
	if o.BaseURL != "" {
		if err := runner.CheckBaseURL(o.BaseURL); err != nil {
			return nil, err
		}
		list = append(list, option.WithBaseURL(o.BaseURL))
	}
	return &Provider{sdk.NewMessageService(list...)}, nil
}

// Send makes one request.
func (p *Provider) Send(ctx context.Context, r *runner.Request, deltas func(message.Envelope)) (provider.Reply, error) {
	body := r.Body(wire.Messages(r.Messages, r.Options()))
	most := cmp.Or(r.MaxTokens, DefaultMaxTokens)
	if !body.Has("max_tokens") {
		body.Set("max_tokens", value.Int(most))
	}
	if r.Temperature != nil {
		body.Set("temperature", value.Float(*r.Temperature))
	}
	raw, err := body.MarshalJSON()
	if err != nil {
		return provider.Reply{}, runner.Broken(name, err)
	}
	in := wire.NewStream(r.ReadOptions())
	stream := p.service.NewStreaming(ctx, param.Override[sdk.MessageNewParams](json.RawMessage(raw)))
	err = runner.Read(stream, func() string { return stream.Current().RawJSON() }, in, deltas)
	return runner.Finished(ctx, name, in.Reply(), failure(err))
}

// failure reads the SDK's errors. An error within a stream has the status of
// the stream; its type says what it is.
func failure(err error) error {
	var refused *sdk.Error
	if !errors.As(err, &refused) {
		return err
	}
	var header http.Header
	if refused.Response != nil {
		header = refused.Response.Header
	}
	code, text := string(refused.Type()), ""
	reply, readErr := wire.Reply([]byte(refused.RawJSON()), provider.ReadOptions{})
	if readErr == nil && reply.Failure != nil {
		code, text = reply.Failure.Code, reply.Failure.Message
	}
	failed := runner.Refused(name, refused.StatusCode, header, code, text, err)
	if refused.StatusCode < 300 && reply.Failure != nil {
		failed.Status, failed.Retryable = 0, reply.Failure.Retryable
	}
	return failed
}
