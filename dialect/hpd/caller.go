package hpd

import (
	"context"
	"sync"

	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub"
	"github.com/parley-hub/parley/identity"
)

// need is the right that a route requires of its caller.
type need uint8

const (
	toRead    need = iota // operators, readers, and agents in what is theirs
	toWatch               // the same; writing over it needs the right to write
	toWrite               // operators, and agents in what is theirs
	toProduce             // operators, and the agent whose run or work it is
	toOperate             // operators
)

// mayCall returns an error if a caller may not use a route. The lookup of sessions
// decides which of them an agent sees.
func mayCall(who Who, n need) error {
	switch {
	case who.Role == Nobody:
		return fault.New(fault.AuthFailed, "show a key: Authorization: Bearer TOKEN, ?access_token=TOKEN, or the token in the path as /~TOKEN/")
	case who.Role == Operator, n == toRead, n == toWatch:
		return nil
	case n == toOperate:
		return fault.New(fault.AccessDenied, "this needs a key of the role operator")
	case who.Role == Reader:
		return fault.New(fault.AccessDenied, "the role reader sees everything and changes nothing; use the key of an operator, a person or an agent")
	}
	return nil
}

// trusted is the dialect itself, which has checked on whose behalf it acts.
var trusted = &hub.Caller{Anyone: true}

// caller returns what the audit records for a caller that acts as an identity. The
// dialect has already checked that it may.
func caller(who Who, as string) *hub.Caller {
	by := &hub.Caller{Anyone: true, Key: who.Key}
	switch who.Role {
	case Operator:
		by.Role = hub.RoleOperator
	case Agent:
		by.Agents = []string{as}
	}
	return by
}

// identities finds the ids under which the dialect posts, and registers
// missing ones.
type identities struct {
	hub Hub
	mu  sync.Mutex // one registration at a time
}

// of returns the id of a name. It registers the name if it is free.
func (r *identities) of(ctx context.Context, name string, kind identity.Kind) (string, error) {
	if id, ok := r.hub.FindAgent(name); ok {
		return id, nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if id, ok := r.hub.FindAgent(name); ok {
		return id, nil
	}
	// With the scheme api_key no other client can register under the name without
	// its key.
	p, err := r.hub.Register(ctx, hub.Registration{Proved: true, Passport: &identity.Passport{
		Name: name, Kind: kind, Auth: identity.Auth{Scheme: identity.SchemeAPIKey},
	}})
	if err == nil {
		return p.ID(), nil
	}
	if id, ok := r.hub.FindAgent(name); ok { // another surface registered it first
		return id, nil
	}
	return "", err
}

// actor returns the identity under which a caller posts: for an operator, the human
// of the setting hpd.user.
func (s *Server) actor(ctx context.Context, who Who) (string, error) {
	if who.Role == Agent {
		return s.ids.of(ctx, who.Agent, identity.Agent)
	}
	return s.user(ctx)
}

// user returns the human that represents operators and the server itself.
func (s *Server) user(ctx context.Context) (string, error) {
	return s.ids.of(ctx, s.cfg.User, identity.Human)
}

// sees reports whether a caller may see a branch.
func (s *Server) sees(ctx context.Context, who Who, channelID string) (bool, error) {
	if who.Role == Operator || who.Role == Reader {
		return true, nil
	}
	id, ok := s.hub.FindAgent(who.Agent)
	if who.Role != Agent || !ok {
		return false, nil
	}
	_, err := s.hub.As(&hub.Caller{Agents: []string{id}}).Channel(ctx, channelID)
	if code := fault.CodeOf(err); err != nil && (code == fault.AccessDenied || code == fault.NotFound) {
		return false, nil
	}
	return err == nil, err
}
