package agh

import (
	"context"
	"strings"

	"github.com/parley-hub/parley/adapter/direct"
	"github.com/parley-hub/parley/adapter/work"
	"github.com/parley-hub/parley/dialect/agh/bridge"
	"github.com/parley-hub/parley/dialect/agh/wire"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub"
	"github.com/parley-hub/parley/internal/jsonbuf"
)

var _ bridge.Network = (*Server)(nil)

// findPeer returns the identity of a peer by its name in other dialects. Its workspace
// must be known here; whether the peer is present is only known when it is used.
func (s *Server) findPeer(name string) (id string, ok bool) {
	p, ok := bridge.ParseName(name)
	if !ok {
		return "", false
	}
	sp, err := s.find(p.Workspace)
	if err != nil {
		return "", false
	}
	who, err := sp.adopt(p.ID)
	return who.agent, err == nil
}

// where returns the first room in which a peer is present.
func (s *Server) where(p bridge.Peer) *netChannel {
	sp, err := s.find(p.Workspace)
	if err != nil {
		return nil
	}
	for _, r := range sp.list() {
		if r.hosted(p.ID) != nil || r.live(p.ID) != nil {
			return r
		}
	}
	return nil
}

// Where returns the name of the first room in which a peer is present.
func (s *Server) Where(p bridge.Peer) (room string, ok bool) {
	if r := s.where(p); r != nil {
		return r.channel, true
	}
	return "", false
}

// Card returns the card of a present peer.
func (s *Server) Card(p bridge.Peer) *wire.PeerCard {
	r := s.where(p)
	if r == nil {
		return nil
	}
	if hosted := r.hosted(p.ID); hosted != nil {
		return hosted.card()
	}
	if other := r.live(p.ID); other != nil {
		return other.card
	}
	return nil
}

// Tell posts a message of an identity to a peer in their direct room.
func (s *Server) Tell(ctx context.Context, p bridge.Peer, room string, t bridge.Telling) error {
	sp, err := s.find(p.Workspace)
	if err != nil {
		return err
	}
	r, err := sp.find(room)
	if err != nil {
		return err
	}
	if err := tooManyHops(t.ID, t.Cross.Origin.Hops, s.cfg.MaxHops+1); err != nil {
		return err
	}
	from, err := r.speaker(ctx, t.As)
	if err != nil {
		return err
	}
	if came, err := r.cameFrom(ctx, from.id, p.ID, t.Cross.Origin); err != nil || came {
		return err
	}
	ext, err := t.Cross.Ext()
	if err != nil {
		return fault.Wrap(fault.Invalid, err, "%v", err)
	}
	b := (&jsonbuf.Buffer{}).Open('{').Key("text").String(t.Text)
	if t.Intent != "" {
		b.Key("intent").String(t.Intent)
	}
	body, err := b.Close('}').Result()
	if err != nil {
		return fault.Wrap(fault.Invalid, err, "text is not valid UTF-8")
	}
	_, _, err = from.send(ctx, &sendBody{
		sendResult: sendResult{ID: t.ID, Kind: wire.Say, Surface: wire.Direct, To: p.ID, WorkID: t.Work, TraceID: t.Trace, CausationID: t.Cause, Ext: ext}, Body: body,
	})
	return err
}

// cameFrom reports whether a peer itself said something, or brought it into its direct
// room with another: then it is not sent back to it.
func (r *netChannel) cameFrom(ctx context.Context, as, peer string, origin envelope.Origin) (bool, error) {
	if origin.Dialect == wire.Dialect && strings.HasPrefix(origin.ID, wire.RecordKey(peer, "")) {
		return true, nil
	}
	id, err := wire.DirectID(r.space.name, r.channel, as, peer)
	if err != nil || origin.ID == "" {
		return false, nil // sending reports what is wrong with the peers
	}
	_, came, err := r.space.entry(ctx, direct.Type, work.Place{Channel: r.channel, ID: id}.OriginKey(origin, peer))
	return came, err
}

// speaker returns the peer of an identity in a room, and joins it if there is none.
func (r *netChannel) speaker(ctx context.Context, agent string) (*peer, error) {
	r.bridging.Lock()
	defer r.bridging.Unlock()
	for _, p := range r.everyone() {
		if p.agent == agent {
			return p, nil
		}
	}
	s := r.space.s
	profile, err := s.hub.AgentByID(agent)
	if err != nil {
		return nil, err
	}
	j, err := s.prepare(profile, "")
	if err != nil {
		return nil, err
	}
	return r.space.admitJoin(ctx, r.channel, j)
}

// refusals maps reasons of other dialects to reasons of a receipt.
var refusals = map[fault.Reason]wire.Reason{fault.OutOfTurn: wire.Busy, fault.ChannelEnded: wire.WorkClosed}

// Reject answers a peer's message under work with a receipt, which ends the work.
func (s *Server) Reject(ctx context.Context, p bridge.Peer, said *wire.Envelope, why error) error {
	sp, err := s.find(p.Workspace)
	if err != nil {
		return err
	}
	r, err := sp.find(said.Channel)
	if err != nil {
		return err
	}
	reason, ok := refusals[fault.ReasonOf(why)]
	if !ok {
		reason = wire.Internal
	}
	return r.receipt(ctx, said.To, p.ID, said.Work, said.ID, "rejected", reason, why.Error())
}

// receipt sends a receipt of a hosted peer about work in its direct room with
// another.
func (r *netChannel) receipt(ctx context.Context, from, to, workID, about, status string, reason wire.Reason, detail string) error {
	p := r.hosted(from)
	if p == nil {
		return fault.New(fault.NotFound, "no peer %.150q is joined to %q", from, r.channel)
	}
	b := (&jsonbuf.Buffer{}).Open('{').Key("for_id").String(about).Key("status").String(status)
	if reason != "" {
		b.Key("reason_code").String(string(reason))
	}
	body, err := b.Key("detail").String(detail).Close('}').Result()
	if err != nil {
		return fault.Wrap(fault.Invalid, err, "%v", err)
	}
	_, _, err = p.send(ctx, &sendBody{sendResult: sendResult{
		ID: about + "-" + status, Kind: wire.Receipt, Surface: wire.Direct, To: to, WorkID: workID, ReplyTo: about,
	}, Body: body})
	return err
}

// Cancel ends the open work of a peer whose id begins with a prefix. Work whose peer
// is gone stays open.
func (s *Server) Cancel(ctx context.Context, p bridge.Peer, prefix, why string) error {
	sp, err := s.find(p.Workspace)
	if err != nil {
		return nil
	}
	return sp.entries(ctx, hub.EntryQuery{Type: direct.Type, Prefix: work.WorkKey(prefix), Limit: 500}, func(e hub.Entry) (bool, error) {
		row, err := work.ParseWorkRow(e.Value)
		if err != nil || row.Work.State.Terminal() || row.Work.Target != p.ID {
			return true, nil
		}
		r, err := sp.find(row.Channel)
		if err != nil {
			return true, nil
		}
		about := "parley-" + strings.TrimPrefix(row.WorkID, "work_")
		if err := r.receipt(ctx, row.Work.Opener, p.ID, row.WorkID, about, "canceled", "", why); fault.Retryable(err) {
			return false, err
		}
		return true, nil
	})
}

// Rooms lists the direct rooms of a peer.
func (s *Server) Rooms(ctx context.Context, p bridge.Peer) ([]string, error) {
	sp, err := s.find(p.Workspace)
	if err != nil {
		return nil, nil
	}
	var rooms []string
	for _, r := range sp.list() {
		err := sp.entries(ctx, hub.EntryQuery{Type: direct.Type, Prefix: work.RoomsPrefix(r.channel, p.ID), Limit: 500}, func(e hub.Entry) (bool, error) {
			rooms = append(rooms, e.Channel)
			return true, nil
		})
		if err != nil {
			return nil, err
		}
	}
	return rooms, nil
}
