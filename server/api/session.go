package api

import (
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/server/access"
)

// sessionBody describes the caller and the hub.
type sessionBody struct {
	Role      string     `json:"role"`
	Agent     *string    `json:"agent"`
	AgentID   *string    `json:"agent_id"`
	Key       *string    `json:"key"`
	Via       *string    `json:"via"`
	ExpiresAt *time.Time `json:"expires_at"`
	May       []string   `json:"may"`
	KeysExist bool       `json:"keys_exist"`
	Hub       hubBody    `json:"hub"`
	Now       time.Time  `json:"now"`
}

type hubBody struct {
	Version   string    `json:"version"`
	Name      string    `json:"name"`
	StartedAt time.Time `json:"started_at"`
	Epoch     string    `json:"epoch"`
}

// showSession describes the caller, also one without a key.
func (a *API) showSession(c *call) error {
	epoch, err := a.hub.Epoch(c.Context())
	if err != nil {
		return err
	}
	who := c.who
	s := sessionBody{
		Role: who.Role.String(), Agent: optional(who.Agent), AgentID: optional(who.id), Key: optional(who.Key), Via: optional(who.via()),
		May: a.may(who), Now: a.hub.Clock(),
		Hub: hubBody{Version: a.cfg.Version, StartedAt: a.hub.Opened(), Epoch: epoch},
	}
	if who.Role != access.Anonymous {
		s.Hub.Name = a.cfg.Name
	}
	if a.cfg.Keys != nil {
		s.KeysExist = a.cfg.Keys.Claimed()
	}
	if a.cfg.Sessions != nil && who.Session != "" {
		if session, ok := a.cfg.Sessions.Session(who.Session); ok {
			s.ExpiresAt = &session.ExpiresAt
		}
	}
	return c.write(http.StatusOK, s)
}

// via returns how the caller was identified.
func (c caller) via() string {
	switch {
	case c.Session != "":
		return "session"
	case c.Key != "":
		return "bearer"
	case c.Role != access.Anonymous:
		return "loopback"
	}
	return ""
}

// may lists the operations that the caller's role permits.
func (a *API) may(who caller) []string {
	list := []string{}
	for _, rt := range slices.Concat(a.routes(), keyRoutes) {
		if who.may(rt.role) == nil {
			list = append(list, rt.name)
		}
	}
	slices.Sort(list)
	return list
}

type signInBody struct {
	Token string `json:"token"`
	Code  string `json:"code"`
}

type signedInBody struct {
	access.Session
	Proof string `json:"proof"`
}

func (a *API) sessions() (*access.Sessions, error) {
	if a.cfg.Sessions == nil {
		return nil, fault.New(fault.NotFound, "this hub has no sessions; send Authorization: Bearer TOKEN with each request")
	}
	return a.cfg.Sessions, nil
}

// signIn makes a session: one half is set as a cookie, the other is in the answer.
func (a *API) signIn(c *call) error {
	var body signInBody
	if err := c.read(&body); err != nil {
		return err
	}
	sessions, err := a.sessions()
	if err != nil {
		return err
	}
	var made access.SignedIn
	switch {
	case (body.Token == "") == (body.Code == ""):
		return fault.New(fault.Invalid, `send {"token": "…"} or {"code": "…"}, one of them`)
	case body.Token != "":
		made, err = sessions.SignIn(c.Context(), body.Token, c.who.Address)
	default:
		made, err = sessions.Redeem(c.Context(), body.Code, c.who.Address)
	}
	if err != nil {
		return err
	}
	http.SetCookie(c.ResponseWriter, access.Cookie(c.Request, made.Cookie, made.ExpiresAt.Sub(made.CreatedAt)))
	return c.write(http.StatusCreated, signedInBody{made.Session, made.Proof})
}

// signOut ends the caller's session, if it has one, and removes the cookie.
func (a *API) signOut(c *call) error {
	if c.who.Session != "" {
		sessions, err := a.sessions()
		if err != nil {
			return err
		}
		if err := sessions.End(c.Context(), c.who.Session, c.who.hub()); err != nil && fault.CodeOf(err) != fault.NotFound {
			return err
		}
	}
	http.SetCookie(c.ResponseWriter, access.Cookie(c.Request, "", 0))
	c.WriteHeader(http.StatusNoContent)
	return nil
}

type codeBody struct {
	Code      string    `json:"code"`
	ExpiresAt time.Time `json:"expires_at"`
}

// sessionCode makes a code with which a browser signs in once. A session cannot make
// one, because it could then renew itself forever.
func (a *API) sessionCode(c *call) error {
	sessions, err := a.sessions()
	if err != nil {
		return err
	}
	if c.who.Session != "" {
		return fault.New(fault.AccessDenied, "a session makes no codes; ask with the token of its key")
	}
	if c.who.Key == "" {
		return fault.New(fault.Protocol, "no key was made yet, so this machine is operator without signing in")
	}
	var body codeBody
	if body.Code, body.ExpiresAt, err = sessions.Code(c.who.Key); err != nil {
		return err
	}
	return c.write(http.StatusCreated, body)
}

type sessionList struct {
	Sessions []listedSession `json:"sessions"`
}

type listedSession struct {
	access.Session
	Current bool `json:"current"` // the caller's session
}

// listSessions lists the sessions of the caller's key; an operator's lists all.
func (a *API) listSessions(c *call) error {
	list := sessionList{[]listedSession{}}
	key := c.who.Key
	if c.who.Has(access.Operator) {
		key = ""
	}
	if a.cfg.Sessions != nil {
		for _, session := range a.cfg.Sessions.List(key) {
			list.Sessions = append(list.Sessions, listedSession{session, session.ID == c.who.Session})
		}
	}
	return c.write(http.StatusOK, list)
}

// endSession ends a session of the caller's key; an operator's ends any.
func (a *API) endSession(c *call) error {
	sessions, err := a.sessions()
	if err != nil {
		return err
	}
	id := c.PathValue("id")
	if session, ok := sessions.Session(id); ok && session.Key != c.who.Key && !c.who.Has(access.Operator) {
		return fault.New(fault.AccessDenied, "session '%.40s' is another key's; an operator may end it", id)
	}
	if err := sessions.End(c.Context(), id, c.who.hub()); err != nil {
		return err
	}
	c.WriteHeader(http.StatusNoContent)
	return nil
}

// sessionSchemas are the bodies and answers of sessions.
func sessionSchemas() obj {
	session := obj{"id": text, "key": text, "created_at": instant, "expires_at": instant, "address": text}
	signedIn := maps.Clone(session)
	signedIn["proof"] = obj{"type": "string", "description": "to be sent in the header Parley-Session; shown this once"}
	listed := maps.Clone(session)
	listed["current"] = obj{"type": "boolean", "description": "whether it is the one that asks"}
	return obj{
		"Session": fieldsOf(obj{
			"role": oneOf("operator", "reader", "agent", "anonymous"), "agent": maybe, "agent_id": maybe, "key": maybe,
			"via": obj{"enum": []any{"loopback", "bearer", "session", nil}}, "expires_at": maybeTime,
			"may":        obj{"type": "array", "items": text, "description": "the operations, by their ids, that the role does not rule out"},
			"keys_exist": flag, "now": instant,
			"hub": fieldsOf(obj{"version": text, "name": text, "started_at": instant, "epoch": text}),
		}),
		"SignIn":      requestOf(obj{"token": text, "code": text}),
		"SignedIn":    fieldsOf(signedIn),
		"SessionCode": fieldsOf(obj{"code": text, "expires_at": instant}),
		"SessionInfo": fieldsOf(listed),
		"SessionList": fieldsOf(obj{"sessions": list(ref("SessionInfo"))}),
	}
}
