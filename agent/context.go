package agent

import (
	"context"

	"github.com/parley-hub/parley/adapter/workflow"
	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/internal/jsonbuf"
)

// SetContext writes a context variable of the turn's workflow channel. It is
// logged at once, before the round's packet.
func (t *Turn) SetContext(ctx context.Context, key string, value any) error {
	if err := t.inWorkflow("set_context"); err != nil {
		return err
	}
	return SetContext(ctx, t.Agent.link, t.Channel, key, value)
}

// DeleteContext removes a context variable.
func (t *Turn) DeleteContext(ctx context.Context, key string) error {
	if err := t.inWorkflow("delete_context"); err != nil {
		return err
	}
	return DeleteContext(ctx, t.Agent.link, t.Channel, key)
}

func (t *Turn) inWorkflow(helper string) error {
	if t == nil || t.Channel == nil {
		return fault.New(fault.Invalid, "%s needs a workflow channel, and there is no channel here", helper)
	}
	return nil
}

// SetContext writes a context variable of a workflow channel for everyone.
func SetContext(ctx context.Context, link Link, m *channel.Metadata, key string, value any) error {
	raw, err := encode("value", value)
	if err != nil {
		return err
	}
	b := (&jsonbuf.Buffer{}).Open('{').Key("set").Open('{').Key(key)
	if raw == nil {
		b.Null()
	} else {
		b.Value(raw)
	}
	return postContext(ctx, link, m, "set_context", b.Close('}').Close('}'))
}

// DeleteContext removes a context variable of a workflow channel.
func DeleteContext(ctx context.Context, link Link, m *channel.Metadata, key string) error {
	b := (&jsonbuf.Buffer{}).Open('{').Key("delete").Strings([]string{key}).Close('}')
	return postContext(ctx, link, m, "delete_context", b)
}

func postContext(ctx context.Context, link Link, m *channel.Metadata, helper string, b *jsonbuf.Buffer) error {
	if m.Manifest.Type != workflow.Type {
		return fault.New(fault.Invalid, "%s needs a workflow channel; '%s' is a %s", helper, m.ID, m.Manifest.Type)
	}
	data, err := b.Result()
	if err != nil {
		return fault.Wrap(fault.Invalid, err, "%s: key is not valid UTF-8", helper)
	}
	_, err = link.Post(ctx, &envelope.Envelope{
		Channel: m.ID, Sender: link.Self().ID, Type: envelope.TypeContextSet, Priority: envelope.Normal, Data: data,
	})
	return err
}
