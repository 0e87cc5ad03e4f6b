// Package access decides who a request comes from: an operator, a reader, a
// named agent, or nobody known. It holds the access keys, checks Host and
// Origin, and says when the hub may listen beyond loopback. What each role
// may do is decided by the handler that serves it, never here.
package access

import (
	"context"
	"net/http"
	"slices"

	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub"
	"github.com/parley-hub/parley/server/problem"
)

// Role is the role of a key.
type Role string

// Roles. Anonymous has no key.
const (
	Anonymous Role = ""
	Agent     Role = "agent"    // one named agent
	Reader    Role = "reader"   // sees everything, changes nothing
	Operator  Role = "operator" // may do everything
)

func (r Role) String() string {
	if r == Anonymous {
		return "anonymous"
	}
	return string(r)
}

// covers lists, for each role, the roles whose rights it has.
var covers = map[Role][]Role{
	Anonymous: {Anonymous},
	Agent:     {Anonymous, Agent},
	Reader:    {Anonymous, Reader},
	Operator:  {Anonymous, Reader, Operator},
}

// Principal is who a request comes from.
type Principal struct {
	Role     Role
	Agent    string // the agent's name, for role Agent
	Key      string // id of the key that was shown, if any
	Session  string // id of the session that has the key's rights, if it is one
	Loopback bool   // the peer is on this machine, and no proxy speaks for others
	Secure   bool   // a browser reaches the hub over TLS
	Address  string // of the peer or, behind a proxy, of whom the proxy names
}

// Has reports whether the principal has the rights of a role.
func (p Principal) Has(role Role) bool {
	return slices.Contains(covers[p.Role], role)
}

// Caller returns the principal as the hub knows it. An agent's id is added
// where its name can be looked up.
func (p Principal) Caller() *hub.Caller {
	by := &hub.Caller{Key: p.Key, Anyone: p.Has(Operator)}
	if p.Session != "" {
		by.Connection = "session " + p.Session
	}
	switch {
	case p.Has(Operator):
		by.Role = hub.RoleOperator
	case p.Has(Reader):
		by.Role = hub.RoleReader
	}
	return by
}

type contextKey struct{}

// With returns a context that carries the principal.
func With(ctx context.Context, p Principal) context.Context {
	return context.WithValue(ctx, contextKey{}, p)
}

// From returns the principal of a request that passed the guard; anything
// else is anonymous.
func From(ctx context.Context) Principal {
	p, _ := ctx.Value(contextKey{}).(Principal)
	return p
}

// Require lets only principals with the rights of role through to next.
func Require(role Role, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch p := From(r.Context()); {
		case p.Has(role):
			next.ServeHTTP(w, r)
		case p.Role == Anonymous:
			problem.Write(w, fault.New(fault.AuthFailed,
				"%s %s needs the role %s: send Authorization: Bearer with a token that parley keys add --role %s made",
				r.Method, r.URL.Path, role, role))
		default:
			problem.Write(w, fault.New(fault.AccessDenied,
				"%s %s needs the role %s; this key has the role %s", r.Method, r.URL.Path, role, p.Role))
		}
	})
}
