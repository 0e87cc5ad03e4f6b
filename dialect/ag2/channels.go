package ag2

import (
	"context"
	"slices"
	"strings"

	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/dialect/ag2/wire"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub"
)

func (c *conn) createChannel(ctx context.Context, raw []byte) ([]byte, error) {
	var p wire.CreateChannelParams
	if err := wire.DecodeParams(raw, &p); err != nil {
		return nil, err
	}
	if err := c.actsFor(p.Creator); err != nil {
		return nil, err
	}
	o := hub.Opening{
		Creator: p.Creator, Type: p.ManifestType, Version: 1, Participants: p.Participants,
		RequiredAcks: p.RequiredAcks, TTL: p.TTL, Knobs: p.Knobs, Intent: p.Intent, Labels: p.Labels,
	}
	if p.ManifestVersion != nil {
		o.Version = *p.ManifestVersion
	}
	if err := CheckOpening(o); err != nil {
		return nil, err
	}
	opened, err := c.server.cfg.Hub.Open(ctx, o)
	if err != nil {
		return nil, err
	}
	return wire.AppendMetadata(nil, opened.Metadata)
}

func (c *conn) getChannel(ctx context.Context, p wire.ByChannel) ([]byte, error) {
	m, err := c.channel(ctx, p.Channel)
	if err != nil {
		return nil, err
	}
	return wire.AppendMetadata(nil, m)
}

// listChannels lists what this connection may look into, and never refuses.
// Where there is more than was asked for, what has not ended goes before what
// has: clients ask for some of each and leave out the ended themselves, so that
// after enough of these they would be shown nothing any more.
func (c *conn) listChannels(ctx context.Context, p wire.ListChannelsParams) ([]byte, error) {
	limit := limitOf(p.Limit)
	if limit == 0 {
		return []byte("[]"), nil
	}
	list, next, err := c.someChannels(ctx, hub.ListOptions{Agent: p.Agent, Limit: limit})
	if err != nil {
		return nil, err
	}
	if next != "" {
		open, err := c.openChannels(ctx, p.Agent, limit)
		if err != nil {
			return nil, err
		}
		list = keepOpen(list, open,
			func(m *channel.Metadata) string { return m.ID },
			func(m *channel.Metadata) bool { return m.State.Terminal() })
	}
	return wire.AppendMetadataList(nil, list)
}

// someChannels lists channels that this connection may look into, as far as
// they fit a frame.
func (c *conn) someChannels(ctx context.Context, o hub.ListOptions) ([]*channel.Metadata, string, error) {
	b, ctx := listing(ctx, o.Limit)
	o.Match = func(m *channel.Metadata) bool {
		return c.sees(m) && b.takes(len(m.Knobs)+60*len(m.Participants)+200)
	}
	list, next, err := c.server.cfg.Hub.Channels(ctx, o)
	return list, next, b.close(err)
}

// openChannels lists an agent's channels that have not ended, or those of
// everyone on this connection, by age.
func (c *conn) openChannels(ctx context.Context, agent string, limit int) ([]*channel.Metadata, error) {
	agents := []string{agent}
	if agent == "" {
		agents = c.identities()
	}
	var open []*channel.Metadata
	for _, id := range agents {
		list, _, err := c.someChannels(ctx, hub.ListOptions{Agent: id, Open: true, Limit: limit})
		if err != nil {
			return nil, err
		}
		open = append(open, list...)
	}
	slices.SortFunc(open, func(a, b *channel.Metadata) int { return strings.Compare(a.ID, b.ID) })
	return slices.CompactFunc(open, func(a, b *channel.Metadata) bool { return a.ID == b.ID }), nil
}

func (c *conn) closeChannel(ctx context.Context, p wire.CloseChannelParams) ([]byte, error) {
	if _, err := c.channel(ctx, p.Channel); err != nil {
		return nil, err
	}
	m, err := c.server.cfg.Hub.CloseChannel(ctx, p.Channel, p.Reason)
	if err != nil {
		return nil, err
	}
	return wire.AppendMetadata(nil, m)
}

func (c *conn) findByCausation(ctx context.Context, p wire.CausationParams) ([]byte, error) {
	if _, err := c.channel(ctx, p.Channel); err != nil {
		return nil, unlessUnknown(err)
	}
	e, err := c.server.cfg.Hub.Answer(ctx, p.Channel, p.Sender, p.Causation)
	if err != nil || e == nil {
		return nil, err
	}
	return wire.AppendEnvelope(nil, e), nil
}

func (c *conn) canSend(ctx context.Context, p wire.CanSendParams) ([]byte, error) {
	if _, err := c.channel(ctx, p.Channel); err != nil {
		return wire.AppendBool(nil, false), unlessUnknown(err)
	}
	can, err := c.server.cfg.Hub.CanSend(ctx, p.Channel, p.Sender, p.Type)
	return wire.AppendBool(nil, can), err
}

// unlessUnknown drops the error of an unknown channel, for operations that
// answer it with nothing.
func unlessUnknown(err error) error {
	if fault.CodeOf(err) == fault.NotFound {
		return nil
	}
	return err
}

func (c *conn) pendingTurns(ctx context.Context, p wire.ByAgent) ([]byte, error) {
	h := c.server.cfg.Hub
	if _, err := h.AgentByID(p.Agent); err != nil {
		return []byte("[]"), nil
	}
	if err := c.bound(p.Agent); err != nil {
		return nil, err
	}
	turns, err := h.Turns(ctx, p.Agent)
	if err != nil {
		return nil, err
	}
	list := make([]wire.PendingTurn, len(turns))
	for i, t := range turns {
		list[i] = wire.PendingTurn{Channel: t.Channel, Trigger: t.Trigger, ExpectedAt: t.ExpectedAt}
	}
	return wire.AppendPendingTurns(nil, list), nil
}

// turnFailed passes on that a turn came to nothing. Neither channel nor
// envelope need exist.
func (c *conn) turnFailed(ctx context.Context, p wire.TurnFailureParams) ([]byte, error) {
	if err := c.bound(p.Agent); err != nil {
		return nil, err
	}
	// What was raised is not told over the wire, only its text.
	return nil, c.server.cfg.Hub.ReportTurnFailure(ctx, p.Channel, p.Agent, p.Envelope, "RuntimeError", p.Error)
}
