package agh

import (
	"net/http"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-hub/parley/server/dialect"
)

const (
	base        = "/agh"
	statusPath  = base + "/network/status"
	agentPath   = base + "/agents/{agent}/capabilities"
	spacePath   = base + "/workspaces/{workspace_id}/network"
	channelPath = spacePath + "/channels/{channel}"
	threadPath  = channelPath + "/threads/{thread_id}"
	directPath  = channelPath + "/directs/{direct_id}"
)

// may says what a role may do with a route. Operators may do everything; callers
// without a key may do nothing.
type may int

const (
	no     may = iota
	yes        // everything
	public     // everything but direct rooms
	joined     // channels that the agent is joined to
	member     // direct rooms that the agent is a peer of
	own        // the agent's sessions, peers and catalog
)

// operation is one route: who may call it, what serves it, and how it is
// described.
type operation struct {
	method, path  string
	reader, agent may
	serve         func(*call) error

	name, says string
	query      []param
	body       any // a value of the request's type; nil: there is none
	status     int
	answer     map[string]any // values of the types of the answer's members; nil: no content
	stream     bool
}

// param is a query parameter.
type param struct{ name, kind, says string }

var (
	paging = []param{
		{"limit", "integer", "how many at most; without it, all"},
		{"after", "string", "continue after the item with this id"},
		{"before", "string", "the nearest before the item with this id"},
	}
	counted       = append(paging[:3:3], param{"count", "boolean", "tell in the header Parley-Total how many there are; 1000+ is at least so many"})
	messagePaging = []param{
		{"limit", "integer", "how many at most; without it, all"},
		{"before", "string", "the nearest before this message; its id, or FROM/ID"},
		{"after", "string", "continue after this message; its id, or FROM/ID"},
		{"kind", "string", "only of this kind"},
		{"work_id", "string", "only of this work"},
	}
	resuming = []param{{"after", "string", "continue after this position, or after this message; its id, or FROM/ID; `now` leaves out what is there"}}
	session  = []param{{"session_id", "string", "whose inbox; session is read too"}}
)

// operations is the table of routes. Its columns for readers and agents decide who
// may call a route: handler checks them for the whole route, and the methods sees,
// seesDirect and owns of call for the data that is shown.
func operations() []operation {
	return []operation{
		{"GET", base + "/openapi.json", yes, yes, (*call).openAPI, "openAPI", "Describes these routes.", nil, nil, 200, map[string]any{}, false},
		{"GET", statusPath, yes, yes, (*call).status, "status", "How the network is doing.", nil, nil, 200, map[string]any{"network": statusShape{}}, false},
		{"GET", agentPath, yes, own, (*call).showCapabilities, "showCapabilities", "What an agent's peers offer.", nil, nil, 200, map[string]any{"capability_catalog": catalogDetail{}}, false},
		{"PUT", agentPath, no, own, (*call).setCapabilities, "setCapabilities", "Replaces what an agent's peers offer.", nil, catalogBody{}, 200, map[string]any{"capability_catalog": catalogDetail{}}, false},
		{"DELETE", agentPath, no, own, (*call).removeCapabilities, "removeCapabilities", "An agent's peers offer nothing any more.", nil, nil, 204, nil, false},
		{"GET", spacePath + "/peers", yes, joined, inSpace((*call).listPeers), "listPeers", "Lists peers: hosted ones, then those last seen.", []param{{"channel", "string", "only of this channel"}}, nil, 200, map[string]any{"peers": []peerShape{}}, false},
		{"GET", spacePath + "/peers/{peer_id}", yes, joined, inSpace((*call).showPeer), "showPeer", "Shows a peer.", nil, nil, 200, map[string]any{"peer": anyOf{peerDetail{}, remoteDetail{}}}, false},
		{"GET", spacePath + "/channels", yes, joined, inSpace((*call).listChannels), "listChannels", "Lists channels, newest activity first.", nil, nil, 200, map[string]any{"channels": []channelShape{}}, false},
		{"POST", spacePath + "/channels", no, no, (*call).createChannel, "createChannel", "Opens a channel with a session for each of some agents.", nil, createBody{}, 201, map[string]any{"channel": channelDetail{}}, false},
		{"GET", channelPath, yes, joined, inChannel((*call).showChannel), "showChannel", "Shows a channel.", nil, nil, 200, map[string]any{"channel": channelDetail{}}, false},
		{"DELETE", channelPath, no, no, inChannel((*call).deleteChannel), "deleteChannel", "Deletes a channel with its peers and everything that was said in it.", nil, nil, 204, nil, false},
		{"POST", channelPath + "/peers", no, no, (*call).joinPeer, "joinPeer", "Joins a peer to a channel.", nil, joinBody{}, 201, map[string]any{"session_id": "", "peer_id": "", "channel": "", "peer": peerShape{}}, false},
		{"DELETE", channelPath + "/peers/{peer_id}", no, own, inSpace((*call).leavePeer), "leavePeer", "Ends a join.", nil, nil, 204, nil, false},
		{"GET", channelPath + "/threads", yes, joined, inChannel((*call).listThreads), "listThreads", "Lists threads, newest activity first.", counted, nil, 200, map[string]any{"threads": []threadShape{}}, false},
		{"GET", threadPath, yes, joined, inChannel((*call).showThread), "showThread", "Shows a thread.", nil, nil, 200, map[string]any{"thread": threadShape{}}, false},
		{"GET", threadPath + "/messages", yes, joined, inChannel((*call).threadMessages), "threadMessages", "Lists a thread's messages by time and id.", messagePaging, nil, 200, map[string]any{"messages": []messageShape{}}, false},
		{"GET", threadPath + "/messages/live", yes, joined, inChannel((*call).threadLive), "threadLive", "Streams a thread's messages.", resuming, nil, 200, nil, true},
		{"GET", channelPath + "/directs", no, member, inChannel((*call).listDirects), "listDirects", "Lists direct rooms, newest activity first.", append(paging[:3:3], param{"peer_id", "string", "only of this peer"}), nil, 200, map[string]any{"directs": []directShape{}}, false},
		{"POST", channelPath + "/directs/resolve", no, own, inChannel((*call).resolveDirect), "resolveDirect", "Finds or opens the direct room of a session and a peer.", nil, resolveBody{}, 200, map[string]any{"direct": directShape{}}, false},
		{"GET", directPath, no, member, (*call).showDirect, "showDirect", "Shows a direct room.", nil, nil, 200, map[string]any{"direct": directShape{}}, false},
		{"GET", directPath + "/messages", no, member, (*call).directMessages, "directMessages", "Lists a direct room's messages by time and id.", messagePaging, nil, 200, map[string]any{"messages": []messageShape{}}, false},
		{"GET", directPath + "/messages/live", no, member, (*call).directLive, "directLive", "Streams a direct room's messages.", resuming, nil, 200, nil, true},
		{"GET", spacePath + "/work/{work_id}", public, joined, inSpace((*call).showWork), "showWork", "Shows a piece of work.", nil, nil, 200, map[string]any{"work": workShape{}}, false},
		{"GET", spacePath + "/trust", yes, yes, inSpace((*call).showTrust), "showTrust", "What the workspace makes of proofs.", nil, nil, 200, map[string]any{"trust": trustPolicy{}}, false},
		{"PUT", spacePath + "/trust", no, no, inSpace((*call).setTrust), "setTrust", "Changes what the workspace makes of proofs.", nil, trustBody{}, 200, map[string]any{"trust": trustPolicy{}}, false},
		{"POST", spacePath + "/send", no, own, inSpace((*call).send), "send", "Sends for a session; answered when it is durable.", nil, sendBody{}, 200, map[string]any{"message": sendResult{}}, false},
		{"GET", spacePath + "/inbox", no, own, (*call).inbox, "inbox", "Lists what waits for a session, oldest first.", append(session[:1:1], param{"wait", "string", "a duration of at most 60s to wait for a message"}, param{"channel", "string", "only of this channel"}), nil, 200, map[string]any{"messages": []payloadShape{}}, false},
		{"POST", spacePath + "/inbox/{message_id}/done", no, own, (*call).done, "done", "A message waits no longer.", session, nil, 204, nil, false},
	}
}

// catalogBody is a catalog as its author writes it.
type catalogBody struct {
	Capabilities []jsontext.Value `json:"capabilities"`
}

// pattern returns the route's pattern in the mux: the id of a message may have
// slashes.
func (o *operation) pattern() string {
	if o.name == "done" {
		return o.method + " " + spacePath + "/inbox/{message_id...}"
	}
	return o.method + " " + o.path
}

func (s *Server) routes() *http.ServeMux {
	mux := http.NewServeMux()
	for _, o := range operations() {
		mux.Handle(o.pattern(), s.handler(&o))
	}
	mux.Handle(base+"/", s.handler(&operation{reader: yes, agent: yes, serve: (*call).nothing}))
	return mux
}

// Mount returns everything below /agh.
func (s *Server) Mount() dialect.Mount {
	return dialect.Mount{Routes: []dialect.Route{{
		Pattern: base + "/", Handler: s.mux,
		Body: func(*http.Request) dialect.Body { return dialect.Body{Bytes: s.cfg.Limits.Body} },
	}}}
}
