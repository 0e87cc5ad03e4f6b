package runner

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net"
	"time"

	"github.com/parley-hub/parley/agent"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/internal/loop"
	"github.com/parley-hub/parley/message"
	"github.com/parley-hub/parley/message/provider"
	"github.com/parley-hub/parley/message/value"
)

// maxPauses is how often a provider may ask to go on with one reply.
const maxPauses = 8

// settleTimeout bounds what is stored of a request that was cut off.
const settleTimeout = 10 * time.Second

// Options configure a model.
type Options struct {
	// Model is its name at the provider.
	Model string
	// Secret is removed from every error and answer.
	Secret Secret
	// MaxTokens bounds one reply; 0 leaves it to the provider.
	MaxTokens   int64
	Temperature *float64
	// Extra are keys of the provider's own for every request.
	Extra *value.Map
	Retry Retry
	// Timeout bounds one attempt; 0 is 10 minutes.
	Timeout time.Duration
	// Budget is shared by all models that get the same one; nil is without limit.
	Budget Purse
	// Observe, if set, is called with each piece of a reply as it arrives. It
	// must not block.
	Observe func(ctx context.Context, t *agent.Turn, ev Event)
	// Log receives attempts that are tried again; nil is slog.Default.
	Log *slog.Logger
}

// Event is one piece of a reply, passed on while the reply arrives.
type Event struct {
	// Reset says that what came before is void, because the request is made
	// again.
	Reset bool
	// Attempt counts the requests for one reply, from 1.
	Attempt int
	// Delta is a fragment of the reply, of type delta; nil with Reset.
	Delta *message.Envelope
}

// Says returns what the event adds to the model's text. Thinking and the
// arguments of calls are not shown to observers: a call may contain something
// for one agent that others must not see.
func (e Event) Says() string {
	if e.Delta == nil {
		return ""
	}
	switch e.Delta.Payload.At("kind") {
	case provider.DeltaReasoning, provider.DeltaToolCall:
		return ""
	}
	text, _ := e.Delta.Text()
	return text
}

// Model asks a provider's model. It is safe for concurrent use.
type Model struct {
	provider Provider
	opts     Options
	aliases  provider.Aliases
}

var _ agent.Model = (*Model)(nil)

// New makes a model.
func New(p Provider, o Options) (*Model, error) {
	if o.Model == "" {
		return nil, fault.New(fault.Invalid, "the name of a model is missing")
	}
	if o.MaxTokens < 0 {
		return nil, fault.New(fault.Invalid, "the most tokens of a reply must not be negative")
	}
	o.Retry = o.Retry.withDefaults()
	if o.Timeout <= 0 {
		o.Timeout = 10 * time.Minute
	}
	o.Log = cmp.Or(o.Log, slog.Default())
	return &Model{provider: p, opts: o}, nil
}

// Respond asks the model once, with as many requests as that takes.
func (m *Model) Respond(ctx context.Context, p *agent.Prompt) (*agent.Response, error) {
	messages, err := conversation(p)
	if err != nil {
		return nil, err
	}
	tools, err := offered(p.Tools)
	if err != nil {
		return nil, err
	}
	r := &Request{
		Model: m.opts.Model, Messages: messages, Tools: tools, Aliases: &m.aliases,
		Temperature: m.opts.Temperature, Extra: m.opts.Extra, Turn: steps(p),
	}
	var whole provider.Reply
	for pauses := 0; ; pauses++ {
		reply, err := m.send(ctx, p, r, r.Turn == 1 && pauses == 0)
		if err != nil {
			return nil, explain(err, m.opts.Secret)
		}
		whole.Messages = append(whole.Messages, reply.Messages...)
		whole.Finish = reply.Finish
		if reply.Finish != provider.FinishPause {
			break
		}
		if pauses == maxPauses {
			return nil, fault.New(fault.Unavailable, "the provider asked %d times to go on with one reply", maxPauses)
		}
		r.Messages = append(r.Messages, reply.Messages...)
	}
	answer, err := response(whole, m.opts.Secret)
	if err != nil {
		return nil, err
	}
	return answer, m.complete(answer, whole.Finish)
}

// complete refuses a reply that the model did not finish, or that was blocked.
func (m *Model) complete(answer *agent.Response, finish provider.Finish) error {
	switch {
	case finish == provider.FinishFilter && answer.Text == "" && len(answer.Calls) == 0:
		return fault.New(fault.Invalid, "the provider's filter withheld the reply")
	case finish == provider.FinishLength && len(answer.Calls) > 0:
		return fault.New(fault.TooLarge, "the reply was cut off in the middle of a tool call; allow more tokens for a reply")
	case finish == provider.FinishLength && answer.Text == "":
		return fault.New(fault.TooLarge, "the reply was cut off before it said anything; allow more tokens for a reply")
	}
	return nil
}

// steps returns how often the model has been asked in this round, this time included.
func steps(p *agent.Prompt) int {
	n := 1
	for i := len(p.Messages) - 1; i >= 0 && p.Messages[i].Role != agent.User; i-- {
		if len(p.Messages[i].Calls) > 0 {
			n++
		}
	}
	return n
}

// send makes a request until it succeeds, or is not to be tried again.
func (m *Model) send(ctx context.Context, p *agent.Prompt, r *Request, turn bool) (provider.Reply, error) {
	for attempt := 1; ; attempt++ {
		reply, err := m.attempt(ctx, p, r, turn && attempt == 1, attempt)
		if err == nil || ctx.Err() != nil {
			return reply, err
		}
		wait, again := m.opts.Retry.wait(attempt, err)
		if !again {
			return reply, err
		}
		m.opts.Log.WarnContext(ctx, "the model is asked again", "attempt", attempt, "wait", wait, "error", explain(err, m.opts.Secret))
		m.observe(ctx, p, Event{Reset: true, Attempt: attempt + 1})
		if err := loop.Pause(ctx, wait); err != nil {
			return reply, err
		}
	}
}

// attempt makes a request once, within the budget.
func (m *Model) attempt(ctx context.Context, p *agent.Prompt, r *Request, turn bool, number int) (provider.Reply, error) {
	r.MaxTokens = m.opts.MaxTokens
	ctx, release := context.WithTimeoutCause(ctx, m.opts.Timeout, errTimeout)
	defer release()
	var granted *Grant
	if m.opts.Budget != nil {
		var err error
		if granted, err = m.opts.Budget.Begin(ctx, p.Turn, Charge{Turn: turn, Input: weigh(r), Output: r.MaxTokens}); err != nil {
			return provider.Reply{}, err
		}
		r.MaxTokens = granted.Output
		if !granted.Until.IsZero() {
			var end context.CancelFunc
			ctx, end = context.WithDeadlineCause(ctx, granted.Until, granted.Late)
			defer end()
		}
	}
	written := 0
	stream := scrubbing{secret: m.opts.Secret, show: func(delta message.Envelope) { m.observe(ctx, p, Event{Attempt: number, Delta: &delta}) }}
	reply, err := m.provider.Send(ctx, r, func(delta message.Envelope) {
		fragment, _ := delta.Text()
		written += len(fragment)
		stream.add(delta, fragment)
	})
	stream.end()
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if granted != nil {
		kept, stop := context.WithTimeout(context.WithoutCancel(ctx), settleTimeout)
		defer stop()
		if failed := m.opts.Budget.Settle(kept, granted, used(reply, err, granted, written)); err == nil {
			err = failed
		}
	}
	return reply, err
}

// errTimeout ends an attempt that takes too long. It is tried again.
var errTimeout = &SendError{Failure: provider.Failure{Provider: "provider", Message: "the reply did not come to its end in time", Retryable: true}}

// used returns what a request cost: as the provider says, or estimated where it
// does not. A request that was refused, or reached nobody, cost nothing.
func used(reply provider.Reply, err error, granted *Grant, written int) provider.Usage {
	var failed *SendError
	var dial *net.OpError
	switch {
	case reply.Usage != nil:
		return *reply.Usage
	case errors.As(err, &failed) && failed.Status >= 300 && written == 0:
		return provider.Usage{}
	case errors.As(err, &dial) && dial.Op == "dial":
		return provider.Usage{}
	}
	return provider.Usage{Prompt: granted.Input, Completion: int64(written)/bytesPerToken + 1}
}

// bytesPerToken is how many bytes of text a token is, about.
const bytesPerToken = 4

// weigh estimates the tokens of a request.
func weigh(r *Request) int64 {
	n := 0
	for _, e := range r.Messages {
		raw, err := e.AppendJSON(nil)
		if err == nil {
			n += len(raw)
		}
	}
	for _, t := range r.Tools {
		raw, err := value.Append(nil, t.Schema())
		if err == nil {
			n += len(t.Name) + len(t.Description) + len(raw)
		}
	}
	return int64(n)/bytesPerToken + 1
}

func (m *Model) observe(ctx context.Context, p *agent.Prompt, ev Event) {
	if m.opts.Observe != nil {
		m.opts.Observe(ctx, p.Turn, ev)
	}
}
