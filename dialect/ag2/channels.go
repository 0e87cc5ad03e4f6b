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
		Dialect: dialectName,
		Creator: p.Creator, Type: p.ManifestType, Version: 1, Participants: p.Participants,
		RequiredAcks: p.RequiredAcks, TTL: p.TTL, Knobs: p.Knobs, Intent: p.Intent, Labels: p.Labels,
	}
	if p.ManifestVersion != nil {
		if o.Version = *p.ManifestVersion; o.Version == 0 { // the hub's own default
			return nil, fault.New(fault.NotFound, "no adapter is loaded for %.100q version 0; versions begin with 1", p.ManifestType)
		}
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
	return c.appendMetadata(ctx, m)
}

// appendMetadata writes a channel in the form that AG2's clients expect.
func (c *conn) appendMetadata(ctx context.Context, m *channel.Metadata) ([]byte, error) {
	if !c.server.isForeign(m) {
		return wire.AppendMetadata(nil, m)
	}
	f, err := c.foreignHere(ctx, m)
	if err != nil {
		return nil, err
	}
	return wire.AppendMetadata(nil, f.shown)
}

// listChannels lists the channels that this connection may read. It never returns
// an authorization error. If there are more than the limit, or than fit a frame,
// channels that have not ended come first: clients ask for a number of channels and
// leave out the ended ones themselves, so ended channels would otherwise fill the
// list.
func (c *conn) listChannels(ctx context.Context, p wire.ListChannelsParams) ([]byte, error) {
	limit := limitOf(p.Limit)
	list, more, err := c.someChannels(ctx, hub.ListOptions{Agent: p.Agent, Dialect: c.listed(p.Agent)}, limit)
	if err != nil {
		return nil, err
	}
	if more && limit > 0 {
		open, err := c.openChannels(ctx, p.Agent, limit)
		if err != nil {
			return nil, err
		}
		list = keepOpen(list, open, limit,
			func(m *channel.Metadata) string { return m.ID },
			func(m *channel.Metadata) bool { return m.State.Terminal() })
	}
	return joined(list), nil
}

// someChannels lists the channels that this connection may read, up to the size of
// a frame.
func (c *conn) someChannels(ctx context.Context, o hub.ListOptions, limit int) ([]entry[*channel.Metadata], bool, error) {
	as := c.server.cfg.Hub.As(c.caller())
	return gather(limit, func(n int, after string) ([]*channel.Metadata, string, error) {
		o.Limit, o.After = n, after
		return as.Channels(ctx, o)
	}, func(m *channel.Metadata) ([]byte, error) { return c.appendMetadata(ctx, m) })
}

// listed returns the dialect whose channels are listed; "" is every dialect. An
// operator who asks for all channels gets only AG2's, because it may be a member of
// none of the others.
func (c *conn) listed(agent string) string {
	if agent == "" && (c.isOperator() || c.server.cfg.TrustClients) {
		return dialectName
	}
	return ""
}

// openChannels lists an agent's channels that have not ended, or those of all
// identities on this connection, by age.
func (c *conn) openChannels(ctx context.Context, agent string, limit int) ([]entry[*channel.Metadata], error) {
	agents := []string{agent}
	if agent == "" {
		agents = c.identities()
	}
	var open []entry[*channel.Metadata]
	for _, id := range agents {
		list, _, err := c.someChannels(ctx, hub.ListOptions{Agent: id, Open: true, Dialect: c.listed(id)}, limit)
		if err != nil {
			return nil, err
		}
		open = oldest(append(open, list...), limit)
	}
	return open, nil
}

// oldest sorts channels by age, removes duplicates, and keeps at most limit and
// what fits a frame.
func oldest(list []entry[*channel.Metadata], limit int) []entry[*channel.Metadata] {
	type channelEntry = entry[*channel.Metadata]
	slices.SortFunc(list, func(a, b channelEntry) int { return strings.Compare(a.value.ID, b.value.ID) })
	list = slices.CompactFunc(list, func(a, b channelEntry) bool { return a.value.ID == b.value.ID })
	size := 0
	for i, e := range list {
		if size += len(e.data) + 1; i == limit || size > logBytes {
			return list[:i:i]
		}
	}
	return list
}

func (c *conn) closeChannel(ctx context.Context, p wire.CloseChannelParams) ([]byte, error) {
	m, err := c.channel(ctx, p.Channel)
	if err != nil {
		return nil, err
	}
	if c.server.isForeign(m) {
		return nil, fault.New(fault.Protocol, "channel '%.100s' is a %s of another dialect, which ends it; nobody closes it from here", m.ID, m.Manifest.Type)
	}
	m, err = c.server.cfg.Hub.As(c.callerIn(m)).CloseChannel(ctx, p.Channel, p.Reason)
	if err != nil {
		return nil, err
	}
	return wire.AppendMetadata(nil, m)
}

func (c *conn) findByCausation(ctx context.Context, p wire.CausationParams) ([]byte, error) {
	m, err := c.channel(ctx, p.Channel)
	if err != nil {
		return nil, fault.IgnoreNotFound(err)
	}
	if c.server.isForeign(m) {
		return c.foreignAnswer(ctx, m, p)
	}
	e, err := c.server.cfg.Hub.AnswerTo(ctx, p.Channel, p.Sender, p.Causation)
	if err != nil || e == nil {
		return nil, err
	}
	mask, err := c.mask(ctx, p.Channel)
	if err != nil {
		return nil, err
	}
	return wire.AppendEnvelope(nil, mask(e)), nil
}

func (c *conn) canSend(ctx context.Context, p wire.CanSendParams) ([]byte, error) {
	m, err := c.channel(ctx, p.Channel)
	if err != nil {
		return wire.AppendBool(nil, false), fault.IgnoreNotFound(err)
	}
	if c.server.isForeign(m) {
		can, err := c.asked(ctx, m, p.Sender, p.Type)
		return wire.AppendBool(nil, can), err
	}
	can, err := c.server.cfg.Hub.CanSend(ctx, p.Channel, p.Sender, p.Type)
	return wire.AppendBool(nil, can), err
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
	if list, err = c.server.foreignTurns(ctx, list, p.Agent); err != nil {
		return nil, err
	}
	return wire.AppendPendingTurns(nil, list), nil
}

// turnFailed reports a failed turn to the hub. Neither the channel nor the envelope
// need exist.
func (c *conn) turnFailed(ctx context.Context, p wire.TurnFailureParams) ([]byte, error) {
	if err := c.bound(p.Agent); err != nil {
		return nil, err
	}
	// Only the text of the error crosses the wire.
	return nil, c.server.cfg.Hub.ReportTurnFailure(ctx, p.Channel, p.Agent, p.Envelope, "RuntimeError", p.Error)
}
