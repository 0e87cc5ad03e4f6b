package server

import (
	"io"
	"net/http"

	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/server/access"
	"github.com/parley-hub/parley/server/body"
	"github.com/parley-hub/parley/server/problem"
)

// KeyRequest asks for a key: for a role, or for one agent, which may have its
// token already.
type KeyRequest struct {
	Role  access.Role `json:"role,omitempty"`
	Agent string      `json:"agent,omitempty"`
	Token string      `json:"token,omitempty"`
}

// NewKey is the answer. The token is never shown again; a token that the
// caller gave is not shown at all.
type NewKey struct {
	access.Key
	Token string `json:"token,omitempty"`
}

// KeyList is the answer to a listing.
type KeyList struct {
	Keys []access.Key `json:"keys"`
}

// keys serves /v1/keys: list and add.
func (s *Server) keys(w http.ResponseWriter, r *http.Request) {
	if !allow(w, r, http.MethodGet, http.MethodPost) {
		return
	}
	if r.Method == http.MethodGet {
		writeJSON(w, http.StatusOK, KeyList{s.deps.Keys.List()})
		return
	}
	request, err := readKeyRequest(r.Body)
	if err != nil {
		problem.Write(w, err)
		return
	}
	token, key, err := s.addKey(r, request)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	s.log.Info("access key added", "key", key.ID, "role", key.Role, "agent", key.Agent, "by", access.From(r.Context()).Key)
	writeJSON(w, http.StatusCreated, NewKey{key, token})
}

func (s *Server) addKey(r *http.Request, request KeyRequest) (token string, key access.Key, err error) {
	by := access.From(r.Context()).Caller()
	if request.Token == "" {
		return s.deps.Keys.Add(r.Context(), request.Role, request.Agent, by)
	}
	if request.Role != access.Agent {
		return "", key, fault.New(fault.Invalid, "a token can be given for an agent's key only; those of operators and readers are made by the hub")
	}
	key, err = s.deps.Keys.Give(r.Context(), request.Agent, request.Token, by)
	return "", key, err
}

func readKeyRequest(from io.Reader) (KeyRequest, error) {
	var request KeyRequest
	if err := body.Read(from, &request); err != nil {
		if fault.CodeOf(err) == fault.Invalid {
			err = fault.Wrap(fault.Invalid, err, `%v; a key request looks like {"role":"reader"} or {"agent":"alice"}`, err)
		}
		return request, err
	}
	if request.Role == "" && request.Agent != "" {
		request.Role = access.Agent
	}
	return request, nil
}

// key serves /v1/keys/{id}: revoke.
func (s *Server) key(w http.ResponseWriter, r *http.Request) {
	if !allow(w, r, http.MethodDelete) {
		return
	}
	key, err := s.deps.Keys.Revoke(r.Context(), r.PathValue("id"), access.From(r.Context()).Caller())
	if err != nil {
		s.fail(w, r, err)
		return
	}
	s.log.Info("access key revoked", "key", key.ID, "role", key.Role, "agent", key.Agent, "by", access.From(r.Context()).Key)
	writeJSON(w, http.StatusOK, key)
}

// fail answers with an error and logs it if it is the hub's own fault.
func (s *Server) fail(w http.ResponseWriter, r *http.Request, err error) {
	if fault.CodeOf(err) == fault.Internal {
		s.log.Error("request failed", "method", r.Method, "path", r.URL.Path, "error", err)
	}
	problem.Write(w, err)
}
