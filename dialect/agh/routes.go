package agh

import (
	"net/http"

	"github.com/parley-hub/parley/server/dialect"
)

const (
	base       = "/agh"
	statusPath = base + "/network/status"
	spacePath  = base + "/workspaces/{workspace_id}/network"
)

// served lists every route: who may call it, and what serves it.
func (s *Server) served() []struct {
	pattern string
	role    Role
	serve   route
} {
	return []struct {
		pattern string
		role    Role
		serve   route
	}{
		{"GET " + statusPath, Agent, (*call).status},
		{"GET " + spacePath + "/peers", Agent, (*call).listPeers},
		{"GET " + spacePath + "/peers/{peer_id}", Agent, (*call).showPeer},
		{"GET " + spacePath + "/channels", Agent, (*call).listChannels},
		{"POST " + spacePath + "/channels", Operator, (*call).createChannel},
		{"GET " + spacePath + "/channels/{channel}", Agent, (*call).showChannel},
		{"POST " + spacePath + "/channels/{channel}/peers", Operator, (*call).joinPeer},
		{"DELETE " + spacePath + "/channels/{channel}/peers/{peer_id}", Agent, (*call).leavePeer},
		{"GET " + spacePath + "/channels/{channel}/threads", Agent, (*call).listThreads},
		{"GET " + spacePath + "/channels/{channel}/threads/{thread_id}", Agent, (*call).showThread},
		{"GET " + spacePath + "/channels/{channel}/threads/{thread_id}/messages", Agent, (*call).threadMessages},
		{"GET " + spacePath + "/channels/{channel}/directs", Agent, (*call).listDirects},
		{"POST " + spacePath + "/channels/{channel}/directs/resolve", Agent, (*call).resolveDirect},
		{"GET " + spacePath + "/channels/{channel}/directs/{direct_id}", Agent, (*call).showDirect},
		{"GET " + spacePath + "/channels/{channel}/directs/{direct_id}/messages", Agent, (*call).directMessages},
		{"GET " + spacePath + "/trust", Agent, (*call).showTrust},
		{"PUT " + spacePath + "/trust", Operator, (*call).setTrust},
		{"GET " + spacePath + "/work/{work_id}", Agent, (*call).showWork},
		{"POST " + spacePath + "/send", Agent, (*call).send},
		{"GET " + spacePath + "/inbox", Agent, (*call).inbox},
		{"POST " + spacePath + "/inbox/{message_id...}", Agent, (*call).done},
	}
}

func (s *Server) routes() *http.ServeMux {
	mux := http.NewServeMux()
	for _, r := range s.served() {
		mux.Handle(r.pattern, s.handler(r.role, r.serve))
	}
	return mux
}

// Mount takes everything below /agh.
func (s *Server) Mount() dialect.Mount {
	return dialect.Mount{Routes: []dialect.Route{{
		Pattern: base + "/", Handler: s.mux,
		Body: func(*http.Request) dialect.Body { return dialect.Body{Bytes: s.cfg.Limits.Body} },
	}}}
}
