package runner

import (
	"context"
	"time"

	"github.com/parley-hub/parley/message"
	"github.com/parley-hub/parley/message/provider"
	"github.com/parley-hub/parley/message/value"
)

// Provider sends requests to models.
type Provider interface {
	// Send makes one request, once, and passes on each piece as it arrives. An
	// error is a *SendError, or that of ctx. A reply that the model did not
	// finish is an error too.
	Send(ctx context.Context, r *Request, deltas func(message.Envelope)) (provider.Reply, error)
}

// Events is a stream of a provider's SDK.
type Events interface {
	Next() bool
	Err() error
	Close() error
}

// Read passes what a stream brings to our reader, as it was sent. raw returns
// the current event's JSON.
func Read(from Events, raw func() string, in provider.Stream, deltas func(message.Envelope)) error {
	defer from.Close()
	for from.Next() {
		added, err := in.Add([]byte(raw()))
		if err != nil {
			return err
		}
		for _, delta := range added {
			deltas(delta)
		}
	}
	return from.Err()
}

// Request is one question to a model.
type Request struct {
	Model    string
	Messages []message.Envelope
	Tools    []provider.Tool
	Aliases  *provider.Aliases
	// MaxTokens bounds what the model may write; 0 leaves it to the provider.
	MaxTokens int64
	// Temperature is left to the provider if nil.
	Temperature *float64
	// Extra are keys of the provider's own, set in the request's body.
	Extra *value.Map
	// Turn is the number of this request in its round, from 1.
	Turn int
}

// Options returns the options with which a request's messages are projected.
func (r *Request) Options() provider.Options {
	return provider.Options{Tools: r.Tools, Aliases: r.Aliases}
}

// ReadOptions returns the options with which its reply is read.
func (r *Request) ReadOptions() provider.ReadOptions {
	return provider.ReadOptions{Aliases: r.Aliases, Turn: r.Turn, MaxBytes: MaxReply}
}

// Body returns a projected request with what only the caller knows: the model
// and the extra keys.
func (r *Request) Body(projected provider.Request) *value.Map {
	body := projected.Body.Clone().Set("model", r.Model)
	return r.AddExtra(body)
}

// AddExtra sets the extra keys, which replace existing ones.
func (r *Request) AddExtra(body *value.Map) *value.Map {
	if r.Extra != nil {
		for key, v := range r.Extra.All() {
			body.Set(key, v)
		}
	}
	return body
}

// SendError says why a request failed.
type SendError struct {
	provider.Failure
	Status int // of the HTTP answer; 0 if there was none
	// RetryAfter is how long the provider asks to wait; 0 if it did not say.
	RetryAfter time.Duration
	Cause      error
}

// Unwrap returns the cause of the failure.
func (e *SendError) Unwrap() error { return e.Cause }
