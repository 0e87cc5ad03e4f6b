package api

import (
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub"
	"github.com/parley-hub/parley/server/access"
)

// route is one operation. The OpenAPI document is generated from the same list.
type route struct {
	method, path string
	name         string      // the operation's id
	says         string      // one sentence
	role         access.Role // rights that are needed; agents may call it too, unless it is operator
	query        []param
	body         string // schema of the request, if it has one
	status       int    // of success
	answer       string // schema of the answer; empty: no content
	stream       bool   // answers with server-sent events if the caller follows
	serve        func(*call) error
}

// importPath takes a bundle, which may be larger than other bodies.
const importPath = "/v1/import"

// param is a query parameter.
type param struct {
	name, kind, says string
}

var (
	limitParam  = param{"limit", "integer", "at most so many; 50 unless told, never more than limits.page, and fewer where they are large"}
	beforeParam = param{"before", "string", "the page in front of this place: a page says it as prev"}
	newestParam = param{"newest", "boolean", "the newest first"}
	countParam  = param{"count", "boolean", "tell in total how many the filters select, on whatever page; see total"}
	pageParam   = param{"after", "string", "go on after this one: the page before says it as next. A page looks at a bounded number of entries: where filters select few of them it may be short, or empty, and have a next"}
	afterParam  = param{"after", "string", "the position after which to begin; the header Last-Event-ID does the same"}
	asParam     = param{"as", "string", "through the eyes of this agent, by name or id"}
	atParam     = param{"at", "integer", "the sequence of an event; 0 is before the first, and the newest unless told"}
	followParam = param{"follow", "boolean", "stay, and send what comes as server sent events"}
)

// channelFilters select channels.
var channelFilters = []param{
	{"agent", "string", "only those it takes part in, by name or id"},
	{"type", "string", "only of this type"},
	{"state", "array", "only in this state: pending, active, closing, closed or expired; may be given several times"},
	{"label", "array", "only with this label, as key=value; may be given several times"},
	{"q", "string", "only with this text: an id, its beginning or end, or in a label's value, the type, or a participant's name"},
	{"waiting_for", "string", "only those in which this agent, by name or id, is expected to speak; people: in which a person is"},
	{"overdue", "boolean", "only those in which a turn is overdue"},
}

func (a *API) routes() []route {
	return []route{
		{
			method: "GET", path: "/v1/channels", name: "listChannels", says: "Lists channels, as metadata or as rows.",
			role: access.Reader, query: append(slices.Clone(channelFilters),
				param{"form", "string", "metadata, or row: what a list shows of a channel, without its knobs"},
				param{"sort", "string", "created; activity: by when something was last said, to the minute; due: by when something expected is due. The last two list channels that have not ended"},
				newestParam, pageParam, beforeParam, limitParam, countParam,
			), status: http.StatusOK, answer: "ChannelPage", serve: a.listChannels,
		},
		{
			method: "POST", path: "/v1/channels", name: "openChannel", says: "Opens a channel, and waits until it is active.",
			role: access.Agent, body: "Opening", status: http.StatusCreated, answer: "Channel", serve: a.openChannel,
		},
		{
			method: "POST", path: "/v1/channels/close", name: "closeChannels",
			says: "Closes the channels that a filter selects, at most 1,000; nothing if not as many match as are expected.",
			role: access.Agent, body: "ClosingMany", status: http.StatusOK, answer: "ClosedMany", serve: a.closeChannels,
		},
		{
			method: "GET", path: "/v1/channels/{id}/export", name: "exportChannel", says: "Downloads a channel as JSON lines, as canonical messages, as Markdown, or as a bundle that can be imported.",
			role: access.Reader, query: []param{
				{"form", "string", "jsonl, messages, markdown or bundle; jsonl unless told"},
				{"home", "boolean", "a bundle of the channel's home with all its channels and content"},
				asParam,
			},
			status: http.StatusOK, answer: "Export", serve: a.exportChannel,
		},
		{
			method: "GET", path: "/v1/channels/{id}", name: "showChannel", says: "Shows a channel with its folded state.",
			role: access.Reader, status: http.StatusOK, answer: "Channel", serve: a.showChannel,
		},
		{
			method: "DELETE", path: "/v1/channels/{id}", name: "deleteChannel", says: "Deletes a channel and everything in it but its audit.",
			role: access.Operator, status: http.StatusNoContent, serve: a.deleteChannel,
		},
		{
			method: "POST", path: "/v1/channels/{id}/close", name: "closeChannel", says: "Closes a channel; the first reason stays.",
			role: access.Agent, body: "Closing", status: http.StatusOK, answer: "Channel", serve: a.closeChannel,
		},
		{
			method: "GET", path: "/v1/channels/{id}/events", name: "channelEvents", says: "Reads or follows a channel's envelopes.",
			role: access.Reader, query: []param{
				afterParam, limitParam, asParam, followParam,
				{"before", "string", "the last events in front of this position"},
				{"around", "string", "a sequence or an envelope's id: half of the page is in front of it"},
				{"type", "array", "only events of this type; may be given several times"},
				{"sender", "array", "only of this sender, by name or id; may be given several times"},
				{"match", "string", "only with this text, whatever its case, in the payload's texts, the type or the sender's name; a call reads at most limits.search"},
			},
			status: http.StatusOK, answer: "ChannelEventPage", stream: true, serve: a.channelEvents,
		},
		{
			method: "POST", path: "/v1/channels/{id}/events", name: "send", says: "Sends an envelope. Out of turn is refused with whose turn it is.",
			role: access.Agent, body: "Send", status: http.StatusCreated, answer: "Sent", serve: a.send,
		},
		{
			method: "POST", path: "/v1/channels/{id}/live", name: "showLive",
			says: "Shows an event to whoever follows the channel now, and stores nothing; parley.msg.delta unless told: a part of a text that is still being written.",
			role: access.Agent, body: "Live", status: http.StatusNoContent, serve: a.showLive,
		},
		{
			method: "GET", path: "/v1/channels/{id}/views/{name}", name: "showView", says: "Shows a channel as one of its participants reads it.",
			role: access.Reader, query: []param{asParam, {"recent_n", "integer", "how many of the last envelopes a windowed view shows"}},
			status: http.StatusOK, answer: "View", serve: a.showView,
		},
		{
			method: "GET", path: "/v1/channels/{id}/state", name: "channelState", says: "Shows a channel's fold as it was after an event, and who last wrote each context variable.",
			role: access.Reader, query: []param{atParam}, status: http.StatusOK, answer: "PastState", serve: a.channelState,
		},
		{
			method: "GET", path: "/v1/channels/{id}/graph", name: "channelGraph", says: "Shows a workflow's graph with the path taken up to an event; of the path the newest 1,000 turns.",
			role: access.Reader, query: []param{atParam}, status: http.StatusOK, answer: "Graph", serve: a.channelGraph,
		},
		{
			method: "GET", path: "/v1/channels/{id}/path", name: "channelPath", says: "Shows each turn of a workflow, what decided who is next, and why.",
			role: access.Reader, query: []param{
				{"after", "integer", "only turns behind this sequence, the first ones; from the beginning unless told"},
				{"before", "integer", "only turns in front of this sequence, the last ones"},
				limitParam,
			}, status: http.StatusOK, answer: "PathPage", serve: a.channelPath,
		},
		{
			method: "GET", path: "/v1/channels/{id}/messages", name: "showMessages", says: "Shows a channel as canonical messages, as one of its participants reads it.",
			role: access.Reader, query: []param{asParam}, status: http.StatusOK, answer: "Messages", serve: a.showMessages,
		},
		{
			method: "GET", path: "/v1/events", name: "events", says: "Reads or follows the envelopes of every channel that the caller may see, or of a group.",
			role: access.Reader, query: []param{
				afterParam, limitParam, asParam, followParam,
				{"label", "array", "only of channels with this label, as key=value; may be given several times"},
				{"type", "string", "only of channels of this type"},
			}, status: http.StatusOK, answer: "EventPage", stream: true, serve: a.events,
		},
		{
			method: "GET", path: "/v1/agents", name: "listAgents", says: "Lists identities with presence and inbox.",
			role: access.Reader, query: []param{
				{"capability", "string", "only who claims or has shown it"},
				{"query", "string", "only whose summary or name has this text"},
				{"kind", "string", "only of this kind: agent, human or remote_agent"},
				{"online", "boolean", "only who is connected"},
				{"sort", "string", "name; pending: the fullest inbox first; seen: whoever was seen last first. In the order of registration unless told"},
				pageParam, beforeParam, limitParam,
			}, status: http.StatusOK, answer: "AgentPage", serve: a.listAgents,
		},
		{
			method: "POST", path: "/v1/agents", name: "registerAgent",
			says: "Registers an identity under a name that nobody has: an operator's key anyone, an agent's key its own name.",
			role: access.Agent, body: "Registration", status: http.StatusCreated, answer: "Agent", serve: a.registerAgent,
		},
		{
			method: "GET", path: "/v1/agents/{id}", name: "showAgent", says: "Shows an identity, by name or id.",
			role: access.Reader, status: http.StatusOK, answer: "Agent", serve: a.showAgent,
		},
		{
			method: "GET", path: "/v1/agents/{id}/turns", name: "agentTurns",
			says: "Lists the turns that are an identity's to take, the first due first. Looking does not count as handing over.",
			role: access.Reader, query: []param{pageParam, beforeParam, limitParam}, status: http.StatusOK, answer: "TurnPage", serve: a.agentTurns,
		},
		{
			method: "GET", path: "/v1/agents/{id}/cursors", name: "agentCursors",
			says: "Lists how far each reader of an identity has acknowledged the channels that have not ended, the newest first.",
			role: access.Reader, query: []param{{"channel", "string", "only of this channel, also if it has ended"}, pageParam, beforeParam, limitParam}, status: http.StatusOK, answer: "CursorPage", serve: a.agentCursors,
		},
		{
			method: "DELETE", path: "/v1/agents/{id}", name: "removeAgent", says: "Unregisters an identity.",
			role: access.Operator, status: http.StatusNoContent, serve: a.removeAgent,
		},
		{
			method: "PUT", path: "/v1/agents/{id}/rule", name: "setAgentRule",
			says: "Sets the operator's rule for an identity, which its own rule cannot exceed. What is left out sets no ceiling.",
			role: access.Operator, body: "OperatorRule", status: http.StatusOK, answer: "Agent", serve: a.setAgentRule,
		},
		{
			method: "DELETE", path: "/v1/agents/{id}/rule", name: "removeAgentRule", says: "Removes the operator's rule for an identity.",
			role: access.Operator, status: http.StatusOK, answer: "Agent", serve: a.removeAgentRule,
		},
		{
			method: "GET", path: "/v1/agents/{id}/budget", name: "showBudget", says: "Shows what an identity's models may spend, and have spent.",
			role: access.Reader, status: http.StatusOK, answer: "Budget", serve: a.showBudget,
		},
		{
			method: "PUT", path: "/v1/agents/{id}/budget", name: "setBudget",
			says: "Sets what an identity's models may spend; what they have spent stays. An agent's key sets its own, and never a larger one.",
			role: access.Agent, body: "BudgetSetting", status: http.StatusOK, answer: "Budget", serve: a.setBudget,
		},
		{
			method: "DELETE", path: "/v1/agents/{id}/budget", name: "removeBudget", says: "Removes an identity's budget, and forgets what was spent of it.",
			role: access.Operator, status: http.StatusNoContent, serve: a.removeBudget,
		},
		{
			method: "POST", path: "/v1/agents/{id}/grants", name: "grantRequest",
			says: "Counts a request to a model, before it is made, in the budget of the identity and of all that delegated to it; refused where one of them is spent.",
			role: access.Agent, body: "GrantRequest", status: http.StatusOK, answer: "Grant", serve: a.grant,
		},
		{
			method: "POST", path: "/v1/agents/{id}/grants/{grant}/settle", name: "settleGrant", says: "Replaces what was granted by what was used.",
			role: access.Agent, body: "GrantUse", status: http.StatusNoContent, serve: a.settleGrant,
		},
		{
			method: "GET", path: "/v1/tasks", name: "listTasks", says: "Lists tasks in the order they were first observed; an agent sees its own and those of its channels.",
			role: access.Reader, query: []param{
				{"owner", "string", "only of this agent, by name or id"},
				{"channel", "string", "only of this channel"},
				{"state", "array", "only in this state: created, running, completed, failed, expired or cancelled; may be given several times"},
				newestParam, pageParam, beforeParam, limitParam, countParam,
			}, status: http.StatusOK, answer: "TaskPage", serve: a.listTasks,
		},
		{
			method: "GET", path: "/v1/tasks/{id}", name: "showTask", says: "Shows a task.",
			role: access.Reader, status: http.StatusOK, answer: "Task", serve: a.showTask,
		},
		{
			method: "POST", path: "/v1/tasks/{id}/cancel", name: "cancelTask", says: "Asks a task's owner to stop; the owner decides.",
			role: access.Agent, body: "Cancelling", status: http.StatusAccepted, answer: "Sent", serve: a.cancelTask,
		},
		{
			method: "POST", path: "/v1/channels/{id}/requests", name: "ask", says: "Asks somebody, in or out of turn. One that was asked before with the same key is answered as it is now.",
			role: access.Agent, body: "Asking", status: http.StatusCreated, answer: "Request", serve: a.ask,
		},
		{
			method: "GET", path: "/v1/requests", name: "listRequests", says: "Lists or follows what waits for somebody, or did; an agent sees what it asked, what it is asked, and what anybody of its channels may answer.",
			role: access.Reader, query: []param{
				{"state", "string", "only in this state: open, answered, expired or cancelled; a stream tells every change"},
				{"kind", "string", "only of this kind, for example approval or clarification; turn: where a person is expected to speak; invite: where a person has not answered an invitation. The last two are read off what the hub waits for, and are listed only by this"},
				{"channel", "string", "only of this channel"},
				{"for", "string", "only for this agent, by name or id"},
				{"asked_by", "string", "only of this asker, by name or id"},
				{"sort", "string", "due: the first due first; asked: in the order of asking, which is the default"},
				{"after", "string", "go on after this request: the page before says it as next; for a stream, the position after which to begin"},
				newestParam, beforeParam, limitParam, countParam, asParam, followParam,
			}, status: http.StatusOK, answer: "RequestPage", stream: true, serve: a.listRequests,
		},
		{
			method: "GET", path: "/v1/requests/{id}", name: "showRequest", says: "Shows a request, and how the same was decided before.",
			role: access.Reader, status: http.StatusOK, answer: "Request", serve: a.showRequest,
		},
		{
			method: "POST", path: "/v1/requests/{id}/answer", name: "answerRequest",
			says: "Answers a request. The first answer holds: another one is refused with it, and so is one for another action than is asked for; an expired request is gone.",
			role: access.Agent, body: "Answer", status: http.StatusOK, answer: "Request", serve: a.answerRequest,
		},
		{
			method: "GET", path: "/v1/audit", name: "audit", says: "Reads or follows the audit.",
			role: access.Reader, query: []param{
				{"kind", "array", "only of this kind; may be given several times"},
				{"channel", "string", "only about this channel"},
				{"agent", "string", "only about this agent, by name or id"},
				{"since", "string", "only from this time on"},
				{"until", "string", "only before this time"},
				newestParam, pageParam, beforeParam, limitParam, countParam, followParam,
			}, status: http.StatusOK, answer: "AuditPage", stream: true, serve: a.audit,
		},
		{
			method: "POST", path: importPath, name: "importBundle", says: "Makes new, ended channels of a bundle; nobody is told.",
			role: access.Operator, body: "Bundle", status: http.StatusCreated, answer: "Imported", serve: a.importBundle,
		},
		{
			method: "GET", path: "/v1/backup", name: "backup", says: "Streams a backup of the running hub as a tar archive.",
			role: access.Operator, status: http.StatusOK, answer: "Archive", serve: a.backup,
		},
		{
			method: "GET", path: "/v1/health", name: "health", says: "Tells how the hub is.",
			role: access.Reader, status: http.StatusOK, answer: "Health", serve: a.health,
		},
		{
			method: "GET", path: "/v1/summary", name: "summary", says: "Counts what there is; for an agent, what concerns it.",
			role: access.Reader, status: http.StatusOK, answer: "Summary", serve: a.showSummary,
		},
		{
			method: "GET", path: "/v1/stats", name: "stats", says: "Shows what the hub measured of itself since it was started, at most 48 hours.",
			role: access.Reader, query: []param{
				{"series", "string", "only these, separated by commas"},
				{"since", "string", "from this time on; the last 10 minutes unless told"},
				{"step", "string", "1s, kept for 10 minutes; 10s, for 3 hours; 1m, for 48 hours. The finest that reaches back to since unless told"},
			}, status: http.StatusOK, answer: "Stats", serve: a.showStats,
		},
		{
			method: "GET", path: "/v1/watch", name: "watch",
			says: "Streams several topics at once: every event of the exact ones, in order, and only the newest of the conflated ones.",
			role: access.Reader, query: []param{
				{"topic", "array", "exact, at most 4: channel:ID@POSITION, requests@POSITION, audit@POSITION, without a position from now on; conflated: summary, rows:ID,ID, agents:ID,ID, stats. At most 16"},
			}, status: http.StatusOK, stream: true, serve: a.watch,
		},
		{
			method: "PUT", path: "/v1/watch/{id}", name: "changeWatch", says: "Replaces the conflated topics of a watch that the caller has open; hello names it.",
			role: access.Reader, body: "WatchTopics", status: http.StatusNoContent, serve: a.changeWatch,
		},
		{
			method: "GET", path: "/v1/session", name: "showSession", says: "Tells who asks, what it may do, and of which hub it asks; also for nobody.",
			role: access.Anonymous, status: http.StatusOK, answer: "Session", serve: a.showSession,
		},
		{
			method: "POST", path: "/v1/session", name: "signIn",
			says: "Signs a browser in with a token or a code. A cookie is one half of the session; the other, proof, is sent in the header Parley-Session with each request.",
			role: access.Anonymous, body: "SignIn", status: http.StatusCreated, answer: "SignedIn", serve: a.signIn,
		},
		{
			method: "DELETE", path: "/v1/session", name: "signOut", says: "Ends the session that asks, with all it has open.",
			role: access.Anonymous, status: http.StatusNoContent, serve: a.signOut,
		},
		{
			method: "POST", path: "/v1/session/codes", name: "makeSessionCode", says: "Makes a code with which a browser signs in once, within a minute.",
			role: access.Reader, status: http.StatusCreated, answer: "SessionCode", serve: a.sessionCode,
		},
		{
			method: "GET", path: "/v1/sessions", name: "listSessions", says: "Lists the browsers that are signed in with the caller's key; an operator's lists all.",
			role: access.Reader, status: http.StatusOK, answer: "SessionList", serve: a.listSessions,
		},
		{
			method: "DELETE", path: "/v1/sessions/{id}", name: "endSession", says: "Ends a session of the caller's key; an operator's ends any.",
			role: access.Reader, status: http.StatusNoContent, serve: a.endSession,
		},
		{
			method: "POST", path: "/v1/chat", name: "chat",
			says: "Says something to an agent in a chat session, a new one unless named, and answers with what it says. The same run_id is answered as the first time.",
			role: access.Agent, query: []param{afterParam, followParam}, body: "Chat", status: http.StatusOK, answer: "ChatAnswer", stream: true, serve: a.say,
		},
		{
			method: "GET", path: "/v1/chat/sessions", name: "listChatSessions", says: "Lists the caller's chat sessions, the newest first.",
			role: access.Agent, query: []param{{"agent", "string", "only with this agent"}, asParam, pageParam, limitParam},
			status: http.StatusOK, answer: "ChatSessionPage", serve: a.listChats,
		},
		{
			method: "POST", path: "/v1/chat/sessions", name: "createChatSession", says: "Makes an empty chat session.",
			role: access.Agent, body: "NewChatSession", status: http.StatusCreated, answer: "ChatSession", serve: a.createChat,
		},
		{
			method: "GET", path: "/v1/chat/sessions/{id}", name: "showChatSession", says: "Shows a chat session with its canonical messages.",
			role: access.Agent, query: []param{asParam}, status: http.StatusOK, answer: "ChatSession", serve: a.showChat,
		},
		{
			method: "PUT", path: "/v1/chat/sessions/{id}/title", name: "renameChatSession", says: "Names a chat session.",
			role: access.Agent, body: "ChatTitle", status: http.StatusOK, answer: "ChatSession", serve: a.renameChat,
		},
		{
			method: "DELETE", path: "/v1/chat/sessions/{id}", name: "deleteChatSession", says: "Deletes a chat session and its conversations with agents.",
			role: access.Agent, query: []param{asParam}, status: http.StatusOK, answer: "ChatDeleted", serve: a.deleteChat,
		},
		{
			method: "GET", path: "/v1/chat/sessions/{id}/events", name: "chatSessionEvents",
			says: "Streams a chat session: stored events with their positions, and text while it is written.",
			role: access.Agent, query: []param{afterParam}, status: http.StatusOK, stream: true, serve: a.chatEvents,
		},
		{
			method: "GET", path: "/v1/openapi.json", name: "openapi", says: "This document.",
			role: access.Anonymous, status: http.StatusOK, answer: "OpenAPI", serve: a.openapi,
		},
	}
}

// keyRoutes are served by the server, which holds the keys. They are listed here so
// that there is one document.
var keyRoutes = []route{
	{
		method: "GET", path: "/v1/keys", name: "listKeys", says: "Lists the access keys, without their tokens.",
		role: access.Operator, status: http.StatusOK, answer: "KeyList",
	},
	{
		method: "POST", path: "/v1/keys", name: "addKey", says: "Makes an access key; its token is shown this once.",
		role: access.Operator, body: "KeyRequest", status: http.StatusCreated, answer: "NewKey",
	},
	{
		method: "DELETE", path: "/v1/keys/{id}", name: "revokeKey", says: "Revokes an access key.",
		role: access.Operator, status: http.StatusOK, answer: "Key",
	},
}

// page reads the place where a list continues. Lists are ordered by id, so the id of
// an entry that is gone is still valid.
func (c *call) page(valid func(id string) bool) (string, error) {
	text := c.URL.Query().Get("after")
	if text != "" && !valid(text) {
		return "", fault.New(fault.Invalid, "after=%.100q is not a position in this list; send what the page before said as next, or leave it out to begin", text)
	}
	return text, nil
}

// limit reads the page size. A larger one than allowed is reduced, so that a client
// need not know the hub's configuration.
func (c *call) limit(most Limits) (bounds, error) {
	n, err := c.number("limit", min(50, most.Page), math.MaxInt32)
	return bounds{min(n, most.Page), most.PageBytes}, err
}

// number reads a parameter from 1 to most.
func (c *call) number(name string, unless, most int) (int, error) {
	text := c.URL.Query().Get(name)
	if text == "" {
		return unless, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > most {
		return 0, fault.New(fault.Invalid, "%s=%q is not a number from 1 to %d", name, text, most)
	}
	return n, nil
}

// labels reads the label parameters; a channel must have all of them.
func (c *call) labels() ([]hub.Label, error) {
	var wanted []hub.Label
	for _, text := range c.URL.Query()["label"] {
		k, v, ok := strings.Cut(text, "=")
		if !ok || k == "" {
			return nil, fault.New(fault.Invalid, "label=%q is not of the form key=value", text)
		}
		wanted = append(wanted, hub.Label{Key: k, Value: v})
	}
	return wanted, nil
}
