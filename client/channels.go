package client

import (
	"context"

	"github.com/parley-hub/parley/agent"
	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/dialect/ag2/wire"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/identity"
)

// Channel returns a channel's metadata.
func (i *Identity) Channel(ctx context.Context, id string) (*channel.Metadata, error) {
	return i.metadata(ctx, wire.GetChannel, wire.ByChannel{Channel: id})
}

// CloseChannel ends a channel; the first reason counts.
func (i *Identity) CloseChannel(ctx context.Context, id, reason string) (*channel.Metadata, error) {
	return i.metadata(ctx, wire.CloseChannel, wire.CloseChannelParams{Channel: id, Reason: reason})
}

// OpenChannel opens a channel as its creator, and returns when it is active.
// Participants, and whom the knobs of a type that this module ships name, are
// given by name or id.
func (i *Identity) OpenChannel(ctx context.Context, o agent.Opening) (*channel.Metadata, error) {
	version := max(o.Version, 1)
	o, err := i.client.withIDs(ctx, o)
	if err != nil {
		return nil, err
	}
	params := wire.CreateChannelParams{
		Creator: i.id, ManifestType: o.Type, ManifestVersion: &version, Participants: o.Participants,
		Knobs: o.Knobs, Intent: o.Intent, Labels: o.Labels,
	}
	if o.TTL != "" {
		ttl := identity.TextTTL(o.TTL)
		params.TTL = &ttl
	}
	return i.metadata(ctx, wire.CreateChannel, params)
}

func (i *Identity) metadata(ctx context.Context, op wire.Op, params any) (*channel.Metadata, error) {
	raw, err := i.client.ask(ctx, op, params, nil)
	if err != nil {
		return nil, err
	}
	return wire.DecodeMetadata(raw)
}

// ListChannels lists the channels that the identity takes part in, oldest
// first, ended ones too.
func (i *Identity) ListChannels(ctx context.Context, limit int) ([]*channel.Metadata, error) {
	n := wire.Index(limit)
	raw, err := i.client.ask(ctx, wire.ListChannels, wire.ListChannelsParams{Agent: i.id, Limit: &n}, nil)
	if err != nil {
		return nil, err
	}
	return wire.DecodeMetadataList(raw)
}

// Log returns a channel's whole history in order, in parts if it is long.
func (i *Identity) Log(ctx context.Context, channelID string) ([]*envelope.Envelope, error) {
	const most = 512
	var log []*envelope.Envelope
	for part := wire.Index(most); ; {
		since := wire.Index(len(log))
		until := since + part
		list, err := i.slice(ctx, channelID, since, until)
		switch {
		case err != nil && part > 1 && fault.CodeOf(err) == fault.Internal:
			part /= 4 // too large for a frame
		case err != nil:
			return nil, err
		default:
			log = append(log, list...)
			if wire.Index(len(list)) < part {
				return log, nil
			}
			part = min(2*part, most)
		}
		part = max(part, 1)
	}
}

func (i *Identity) slice(ctx context.Context, channelID string, since, until wire.Index) ([]*envelope.Envelope, error) {
	raw, err := i.client.ask(ctx, wire.ReadWAL, wire.ReadWALParams{Channel: channelID, Since: since, Until: &until}, nil)
	if err != nil {
		return nil, err
	}
	return wire.DecodeEnvelopes(raw)
}

// Answer finds the identity's own envelope that answers another; nil if there
// is none.
func (i *Identity) Answer(ctx context.Context, channelID, cause string) (*envelope.Envelope, error) {
	raw, err := i.client.ask(ctx, wire.FindEnvelopeByCausation, wire.CausationParams{Channel: channelID, Sender: i.id, Causation: cause}, nil)
	if err != nil || len(raw) == 0 {
		return nil, err
	}
	return wire.DecodeEnvelope(raw)
}

// CanSend reports whether the adapter would accept an envelope of a type now.
func (i *Identity) CanSend(ctx context.Context, channelID, eventType string) (bool, error) {
	var can bool
	err := i.client.fetch(ctx, wire.CanSend, wire.CanSendParams{Channel: channelID, Sender: i.id, Type: eventType}, &can)
	return can, err
}

// PendingTurns lists the turns that the identity is to take.
func (i *Identity) PendingTurns(ctx context.Context) ([]agent.PendingTurn, error) {
	raw, err := i.client.ask(ctx, wire.PendingTurnsFor, wire.ByAgent{Agent: i.id}, nil)
	if err != nil {
		return nil, err
	}
	turns, err := wire.DecodePendingTurns(raw)
	list := make([]agent.PendingTurn, len(turns))
	for n, t := range turns {
		list[n] = agent.PendingTurn{Channel: t.Channel, Trigger: t.Trigger, ExpectedAt: t.ExpectedAt}
	}
	return list, err
}

// ReportTurnFailure reports to the hub that a turn failed.
func (i *Identity) ReportTurnFailure(ctx context.Context, channelID, envelopeID string, cause error) error {
	return i.client.fetch(ctx, wire.ReportTurnFailure, wire.TurnFailureParams{
		Channel: channelID, Agent: i.id, Envelope: envelopeID, Error: cause.Error(),
	}, nil)
}
