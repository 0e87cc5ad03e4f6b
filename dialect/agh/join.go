package agh

import (
	"context"
	"strings"

	"github.com/parley-hub/parley/adapter/room"
	"github.com/parley-hub/parley/adapter/work"
	"github.com/parley-hub/parley/dialect/agh/wire"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub"
	"github.com/parley-hub/parley/identity"
	"github.com/parley-hub/parley/internal/jsonbuf"
)

// origin marks what only this dialect posts.
var origin = envelope.Origin{Dialect: wire.Dialect}

// joining is a peer that will be joined.
type joining struct{ agent, peer, session string }

// prepare returns how a peer of an agent is joined.
func (s *Server) prepare(agent hub.Profile, peerID string) (joining, error) {
	j := joining{agent: agent.ID(), peer: peerID, session: wire.NewSessionID()}
	if peerID == "" {
		var err error
		if j.peer, err = wire.PeerID(agent.Passport.Name, j.session); err != nil {
			return j, fault.Wrap(fault.Invalid, err, "%v", err)
		}
	}
	return j, s.checkPeer(j.peer)
}

// checkPeer refuses an invalid id of a hosted peer. A handle is valid if its key is
// here.
func (s *Server) checkPeer(id string) error {
	switch {
	case wire.ValidPeer(id):
		return nil
	case !wire.ValidHandle(id):
		return fault.New(fault.Invalid, "%.150q cannot be a peer id; one matches ^[a-z0-9][a-z0-9._-]{0,127}$, or is a handle whose key is in the data folder", id)
	}
	if _, err := s.keyOf(id); err != nil {
		return fault.Wrap(fault.Invalid, err, "%v; parley agh keys new makes a key and prints its handle", err)
	}
	return nil
}

// agentOf returns the identity of a name, and registers it if register is set.
func (s *Server) agentOf(ctx context.Context, name string, register bool) (hub.Profile, error) {
	if strings.TrimSpace(name) == "" {
		return hub.Profile{}, fault.New(fault.Invalid, "the agent's name is missing")
	}
	id, ok := s.hub.FindAgent(name)
	if ok {
		return s.hub.AgentByID(id)
	}
	if !register {
		return hub.Profile{}, fault.New(fault.Invalid, "no agent is called %.100q; register it, or join it as a peer", name)
	}
	p, err := s.hub.Register(identity.WithPeer(ctx, identity.Peer{Loopback: true}), hub.Registration{
		Passport: &identity.Passport{Name: name, Auth: identity.Auth{Scheme: identity.SchemeNone}},
	})
	if fault.CodeOf(err) == fault.AuthFailed { // the name has a key, or names need one
		p, err = s.hub.Register(ctx, hub.Registration{Proved: true, Passport: &identity.Passport{
			Name: name, Auth: identity.Auth{Scheme: identity.SchemeAPIKey},
		}})
	}
	if fault.ReasonOf(err) == fault.NameTaken { // registered meanwhile
		return s.hub.Agent(name)
	}
	return p, err
}

// admitJoin joins a peer to a channel, which is opened if there is none.
func (sp *space) admitJoin(ctx context.Context, channel string, j joining) (*peer, error) {
	b := &jsonbuf.Buffer{}
	b.Open('{').Key("peer_id").String(j.peer).Key("session_id").String(j.session)
	if err := sp.post(ctx, channel, j.agent, room.TypeJoin, b.Close('}')); err != nil {
		return nil, err
	}
	p, err := sp.session(j.session)
	if err != nil {
		return nil, err
	}
	return p, sp.s.attach(p)
}

// admitLeave ends a join.
func (sp *space) admitLeave(ctx context.Context, p *peer) error {
	b := &jsonbuf.Buffer{}
	b.Open('{').Key("peer_id").String(p.id)
	if err := sp.post(ctx, p.room.channel, p.agent, room.TypeLeave, b.Close('}')); err != nil {
		return err
	}
	sp.s.release(p)
	return nil
}

// admitPurpose sets the purpose of a channel.
func (sp *space) admitPurpose(ctx context.Context, channel, agent, purpose string) error {
	b := &jsonbuf.Buffer{}
	b.Open('{').Key("purpose").String(purpose)
	return sp.post(ctx, channel, agent, room.TypePurpose, b.Close('}'))
}

// post appends a record to a room's history, and returns when it is durable and the
// listener has handled it.
func (sp *space) post(ctx context.Context, channel, agent, eventType string, data *jsonbuf.Buffer) error {
	text, err := data.Result()
	if err != nil {
		return fault.Wrap(fault.Invalid, err, "%v", err)
	}
	knobs, err := sp.knobs(channel, work.Knobs{})
	if err != nil {
		return err
	}
	_, err = sp.s.hub.AdmitNamed(ctx,
		hub.Opening{Home: sp.home.ID, Type: room.Type, Name: channel, Creator: agent, Knobs: knobs, Dialect: wire.Dialect},
		&envelope.Envelope{Sender: agent, Type: eventType, Data: text, Origin: origin}, nil).Wait(ctx)
	if fault.ReasonOf(err) == fault.ChannelEnded {
		return fault.Wrap(fault.Unavailable, err, "the channel %q is being deleted; try again when that is done", channel)
	}
	return err
}

// createChannel opens or extends a channel with a session for each of some agents. It
// joins all of them or none.
func (s *Server) createChannel(ctx context.Context, sp *space, channel, purpose string, names []string) (*netChannel, error) {
	all := make([]joining, 0, len(names))
	for _, name := range names {
		agent, err := s.agentOf(ctx, name, false)
		if err != nil {
			return nil, err
		}
		j, err := s.prepare(agent, "")
		if err != nil {
			return nil, err
		}
		all = append(all, j)
	}
	if err := sp.admitPurpose(ctx, channel, all[0].agent, purpose); err != nil {
		return nil, err
	}
	var joined []*peer
	for _, j := range all {
		p, err := sp.admitJoin(ctx, channel, j)
		if err != nil {
			sp.undo(context.WithoutCancel(ctx), joined)
			return nil, err
		}
		joined = append(joined, p)
	}
	return sp.find(channel)
}

// undo removes the joins of a request that failed.
func (sp *space) undo(ctx context.Context, joined []*peer) {
	for _, p := range joined {
		if err := sp.admitLeave(ctx, p); err != nil {
			sp.s.cfg.Log.Warn("a peer stays joined to a channel that was not opened as asked", "workspace_id", sp.name, "peer_id", p.id, "error", err)
		}
	}
}
