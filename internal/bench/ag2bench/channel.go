package ag2bench

import (
	"context"
	"fmt"

	"github.com/parley-hub/parley/dialect/ag2/wire"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/identity"
)

// joinAll makes many peers, each on a connection of its own.
func joinAll(ctx context.Context, url, what string, n int) ([]*peer, error) {
	peers := make([]*peer, 0, n)
	for i := range n {
		p, err := join(ctx, url, named(what, i))
		if err != nil {
			closeAll(peers)
			return nil, err
		}
		peers = append(peers, p)
	}
	return peers, nil
}

// open opens a channel without a TTL. Each participant answers on its own connection,
// because some hubs read nothing from the creator meanwhile.
func open(kind string, creator *peer, others []*peer) (id string, err error) {
	version, never := 1, identity.SecondsTTL(0)
	params := wire.CreateChannelParams{
		Creator: creator.id, ManifestType: kind, ManifestVersion: &version, TTL: &never, Knobs: identity.Object("{}"), Labels: map[string]string{},
	}
	for _, p := range others {
		params.Participants = append(params.Participants, p.id)
	}
	encoded, err := wire.EncodeParams(params)
	if err != nil {
		return "", err
	}
	if _, err := creator.conn.Write(request(wire.CreateChannel, encoded)); err != nil {
		return "", err
	}
	for _, p := range others {
		if id, err = p.accept(); err != nil {
			return "", fmt.Errorf("accept a %s: %w", kind, err)
		}
	}
	if _, err = creator.answered(); err != nil {
		return "", fmt.Errorf("open a %s: %w", kind, err)
	}
	return id, nil
}

// accept waits for an invitation and accepts it.
func (p *peer) accept() (channel string, err error) {
	e, err := p.notified(envelope.TypeInvite)
	if err != nil {
		return "", err
	}
	if _, err := p.conn.Write(p.post(e.Channel, envelope.TypeInviteAck, []byte("{}"))); err != nil {
		return "", err
	}
	_, err = p.answered()
	return e.Channel, err
}

// notified waits for a delivery of a type.
func (p *peer) notified(eventType string) (*envelope.Envelope, error) {
	p.expect(0)
	for {
		frame, err := p.nextFrame()
		if err != nil {
			return nil, err
		}
		n, ok := frame.(*wire.Notify)
		if !ok {
			continue
		}
		if e, err := wire.DecodeEnvelope(n.Envelope); err != nil || e.Type == eventType {
			return e, err
		}
	}
}

// post encodes a post of the peer's.
func (p *peer) post(channel, eventType string, data []byte) []byte {
	return request(wire.PostEnvelope, wire.EncodePost(&envelope.Envelope{
		Channel: channel, Sender: p.id, Type: eventType, Data: data, Priority: envelope.Normal,
	}))
}

// settle posts once and waits until all readers have it, so that they have read what
// the opening caused.
func settle(poster *peer, post []byte, eventType string, readers []*peer) error {
	if _, err := poster.conn.Write(post); err != nil {
		return err
	}
	if _, err := poster.answered(); err != nil {
		return fmt.Errorf("post: %w", err)
	}
	for _, r := range readers {
		if _, err := r.notified(eventType); err != nil {
			return err
		}
	}
	return nil
}
