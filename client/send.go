package client

import (
	"context"
	"errors"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-hub/parley/dialect/ag2/wire"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
)

// Post sends an envelope as this identity and returns its id. It is given an
// idempotency key if it has none, so that sending it again after a reconnect
// does not double it.
func (i *Identity) Post(ctx context.Context, e *envelope.Envelope) (string, error) {
	sent, err := i.prepared(e)
	if err != nil {
		return "", err
	}
	raw, err := i.client.askRaw(ctx, wire.PostEnvelope, wire.EncodePost(sent), nil)
	if err != nil {
		return "", err
	}
	var id string
	err = wire.DecodeResult(raw, &id)
	return id, err
}

// prepared returns an envelope as it is sent. Its data is copied into the
// frame, so data that is not a JSON object is refused.
func (i *Identity) prepared(e *envelope.Envelope) (*envelope.Envelope, error) {
	sent := *e
	sent.Sender = i.id
	if sent.Key == "" {
		sent.Key = envelope.NewID()
	}
	if len(sent.Data) == 0 {
		sent.Data = []byte("{}")
	}
	if data := jsontext.Value(sent.Data); data.Kind() != '{' || !data.IsValid() {
		return nil, fault.New(fault.Invalid, "event_data is not a JSON object")
	}
	return &sent, nil
}

// Send posts text to a channel.
func (i *Identity) Send(ctx context.Context, channelID, text string) (string, error) {
	e, err := textEnvelope(channelID, text)
	if err != nil {
		return "", err
	}
	return i.Post(ctx, e)
}

// SendWhenAllowed posts text as soon as it is the identity's turn, and waits
// for that as long as the context lasts. It gives up when the channel ends.
func (i *Identity) SendWhenAllowed(ctx context.Context, channelID, text string) (string, error) {
	e, err := textEnvelope(channelID, text)
	if err != nil {
		return "", err
	}
	return i.PostWhenAllowed(ctx, e)
}

// PostWhenAllowed is like SendWhenAllowed, for any envelope.
func (i *Identity) PostWhenAllowed(ctx context.Context, e *envelope.Envelope) (string, error) {
	// One key for all tries: whichever arrives first counts.
	sent, err := i.prepared(e)
	if err != nil {
		return "", err
	}
	const first, longest = 20 * time.Millisecond, time.Second
	for wait := first; ; wait = min(2*wait, longest) {
		moved := i.movement()
		id, err := i.postIfAllowed(ctx, sent)
		pause := wait
		switch fault.CodeOf(err) {
		case "":
			return id, nil
		case fault.Protocol:
			if ended := i.ended(ctx, sent.Channel); ended != nil {
				return "", ended
			}
		case fault.RateLimited:
			pause = max(pause, retryAfter(err))
		case fault.InboxFull:
		default:
			return "", err
		}
		select {
		case <-moved:
			wait = first
		case <-time.After(pause):
		case <-ctx.Done():
			return "", fault.Wrap(fault.Unavailable, ctx.Err(), "it was not this identity's turn in time: %v", err)
		}
	}
}

var errNotYet = fault.New(fault.Protocol, "another one is expected to speak")

func (i *Identity) postIfAllowed(ctx context.Context, e *envelope.Envelope) (string, error) {
	can, err := i.CanSend(ctx, e.Channel, e.Type)
	if err != nil {
		return "", err
	}
	if !can {
		return "", errNotYet
	}
	return i.Post(ctx, e)
}

// ended returns why nothing can be sent to a channel any more, or nil.
func (i *Identity) ended(ctx context.Context, channelID string) error {
	m, err := i.Channel(ctx, channelID)
	if err != nil {
		return err
	}
	if m.State.Terminal() {
		return fault.New(fault.Protocol, "channel '%s' is %s: %s", channelID, m.State, m.CloseReason)
	}
	return nil
}

// movement returns a channel that is closed at the next delivery.
func (i *Identity) movement() <-chan struct{} {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.moved
}

func retryAfter(err error) time.Duration {
	if f, ok := errors.AsType[*fault.Error](err); ok {
		return f.RetryAfter
	}
	return 0
}

func textEnvelope(channelID, text string) (*envelope.Envelope, error) {
	data, err := json.Marshal(map[string]string{"text": text})
	if err != nil {
		return nil, fault.Wrap(fault.Invalid, err, "the text is not valid UTF-8")
	}
	return &envelope.Envelope{Channel: channelID, Type: envelope.TypeText, Priority: envelope.Normal, Data: data}, nil
}
