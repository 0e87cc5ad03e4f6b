package hpd

import (
	"net/http"
	"strings"

	"github.com/parley-hub/parley/dialect/hpd/wire"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/internal/answers"
	"github.com/parley-hub/parley/internal/turns"
)

// route is one operation, under both surfaces if its path names one.
type route struct {
	method string
	path   string // as path.route has it
	need   need
	code   string // of errors that have no code of their own
	says   string
	serve  func(*call) error
}

// Parts of paths.
const (
	branchPath = "/sessions/{}/branches/{}"
	agentPath  = "/agents/{}/sessions/{}/branches/{}"
	livePath   = agentPath + "/events/live"
)

func (s *Server) table() []route {
	return append([]route{
		{"GET", "/openapi.json", toRead, wire.InvalidRequest, "Describes these routes.", s.openAPI},
		{"POST", "/sessions", toWrite, wire.CreateSessionError, "Creates a session with its branch main.", s.createSession},
		{"GET", "/sessions", toRead, wire.SearchSessionsError, "Lists sessions.", s.listSessions},
		{"POST", "/sessions/search", toRead, wire.SearchSessionsError, "Finds sessions by metadata.", s.searchSessions},
		{"GET", "/sessions/{}", toRead, wire.GetSessionError, "Shows a session.", s.getSession},
		{"PATCH", "/sessions/{}", toWrite, wire.UpdateSessionError, "Changes a session's metadata.", s.updateSession},
		{"DELETE", "/sessions/{}", toWrite, wire.DeleteSessionError, "Deletes a session with its branches and contents.", s.deleteSession},
		{"GET", "/sessions/{}/thread-graph", toRead, wire.ListBranchesError, "Shows a session's threads and fork groups.", s.threadGraph},
		{"GET", "/sessions/{}/branches", toRead, wire.ListBranchesError, "Lists a session's branches.", s.listBranches},
		{"POST", "/agents/{}/sessions/{}/branches", toWrite, wire.CreateBranchError, "Creates a branch.", s.createBranch},
		{"GET", branchPath, toRead, wire.GetBranchError, "Shows a branch.", s.inBranch(s.getBranch)},
		{"PATCH", branchPath, toWrite, wire.UpdateBranchError, "Changes a branch's name, description, tags or metadata.", s.updateBranch},
		{"DELETE", branchPath, toWrite, wire.DeleteBranchError, "Deletes a branch.", s.deleteBranch},
		{"GET", branchPath + "/siblings", toRead, wire.GetSiblingsError, "Lists a branch's sibling group.", s.inBranch(s.siblings)},
		{"GET", branchPath + "/events", toRead, wire.GetEventsError, "Reads a branch's history.", s.getEvents},
		{"POST", branchPath + "/content", toWrite, wire.UploadContentError, "Uploads a content.", s.inBranch(s.postContent)},
		{"GET", branchPath + "/content", toRead, wire.ListContentError, "Lists a branch's contents.", s.inBranch(s.listContent)},
		{"GET", branchPath + "/content/{}", toRead, wire.DownloadContentError, "Downloads a content.", s.inBranch(s.getContent)},
		{"DELETE", branchPath + "/content/{}", toWrite, wire.DeleteContentError, "Deletes a content.", s.inBranch(s.deleteContent)},
		{"POST", "/sessions/{}/content", toWrite, wire.UploadContentError, "Uploads a content.", s.inBranch(s.postContent)},
		{"GET", "/sessions/{}/content", toRead, wire.ListContentError, "Lists a branch's contents.", s.inBranch(s.listContent)},
		{"GET", "/sessions/{}/content/{}", toRead, wire.DownloadContentError, "Downloads a content.", s.inBranch(s.getContent)},
		{"DELETE", "/sessions/{}/content/{}", toWrite, wire.DeleteContentError, "Deletes a content.", s.inBranch(s.deleteContent)},
		{"GET", "/agents", toRead, wire.CreateAgentError, "Lists agent definitions.", s.listAgents},
		{"POST", "/agents", toOperate, wire.CreateAgentError, "Stores an agent definition.", s.createAgent},
		{"GET", "/agents/{}", toRead, wire.UpdateAgentError, "Shows an agent definition.", s.getAgent},
		{"PUT", "/agents/{}", toOperate, wire.UpdateAgentError, "Replaces an agent definition's config.", s.updateAgent},
		{"DELETE", "/agents/{}", toOperate, wire.DeleteAgentError, "Removes an agent definition.", s.deleteAgent},
		{"GET", agentPath + "/ws", toWatch, wire.InvalidRequest, "Streams events and takes inputs over a WebSocket.", s.websocket},
		{"POST", agentPath + "/fork", toWrite, wire.ForkBranchError, "Forks a branch after a message.", s.postFork},
		{"POST", agentPath + "/inputs", toWrite, "InputError", "Starts a run.", s.postInput},
		{"POST", agentPath + "/interrupt", toWrite, "InterruptError", "Interrupts the active run.", s.postInterrupt},
		{"POST", agentPath + "/responses", toWrite, wire.BidirectionalResponse, "Answers a request.", s.postResponse},
		{"GET", agentPath + "/requests", toRead, wire.BidirectionalResponseError, "Lists open requests.", s.inBranch(s.listRequests)},
		{"GET", "/agents/{}/work", toProduce, "WorkError", "Streams an agent's work to its producer.", s.getWork},
		{"POST", agentPath + "/events", toProduce, "PublishError", "Publishes events of the active run.", s.postEvents},
		{"POST", agentPath + "/requests", toProduce, "RequestError", "Asks a request of the active run.", s.postRequest},
		{"POST", agentPath + "/runs/{}/complete", toProduce, "CompleteError", "Ends a run.", s.postComplete},
		{"GET", agentPath + "/runs", toRead, wire.ListBranchRunsError, "Lists an agent's runs on a branch.", s.listRuns},
		{"GET", agentPath + "/runs/active", toRead, wire.GetActiveBranchRunError, "Shows the active run, or null.", s.inBranch(s.activeRun)},
		{"GET", agentPath + "/runs/{}", toRead, wire.GetBranchRunError, "Shows a run.", s.inBranch(s.getRun)},
		{"GET", livePath, toRead, wire.GetEventsError, "Streams a branch's events.", s.inBranch(s.live)},
	}, s.legacyRoutes()...)
}

// inBranch serves a route of a branch that the caller may see.
func (s *Server) inBranch(serve func(*call, *scope) error) func(*call) error {
	return func(c *call) error {
		x, err := s.scope(c)
		if err != nil {
			return err
		}
		return serve(c, x)
	}
}

// ServeHTTP finds the route of a request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c, ok := s.call(w, r)
	if !ok {
		s.nothing(c, nil)
		return
	}
	found, allowed := s.find(c)
	if found == nil {
		s.nothing(c, allowed)
		return
	}
	c.code = found.code
	err := mayCall(c.who, found.need)
	if err == nil {
		err = s.served(c, found)
	}
	if err != nil {
		s.fail(c, err)
	}
}

// call parses a request's path; it returns false if no route matches.
func (s *Server) call(w http.ResponseWriter, r *http.Request) (*call, bool) {
	p, ok := parsePath(strings.TrimPrefix(r.URL.EscapedPath(), s.cfg.Prefix))
	if ok && p.route == "/sessions/{}" && p.session == "search" && r.Method == http.MethodPost {
		p.route = "/sessions/search"
	}
	return &call{Request: r, path: p, w: w, who: s.cfg.Who(r), code: wire.InvalidRequest}, ok
}

// refused writes the response to a request that the server in front of this handler
// refused.
func (s *Server) refused(w http.ResponseWriter, r *http.Request, err error) {
	c, ok := s.call(w, r)
	if ok {
		if found, _ := s.find(c); found != nil {
			c.code = found.code
		}
	}
	s.fail(c, err)
}

// served serves a route. The response counts against the caller's key until it is
// read. Requests that only read wait for their turn, except an operator's.
func (s *Server) served(c *call, found *route) error {
	c.reads = found.need == toRead
	var turn *turns.Turn
	if c.reads && c.who.Role != Operator {
		turn = s.hub.Reading(answers.Reader(c.who.Key))
	}
	c.answer = s.cfg.Answers.For(c.who.Key, turn)
	defer c.answer.Close()      // also after a panic
	if found.path != livePath { // a stream takes a turn for each event
		if err := c.answer.Begin(c.Context(), s.cfg.Limits.Write); err != nil {
			return err
		}
	}
	err := found.serve(c)
	if c.missing {
		err = s.serveForeign(c, found, err)
	}
	c.answer.EndTurn()
	return err
}

// find returns the route of a call, or the methods that its path allows.
func (s *Server) find(c *call) (found *route, allowed []string) {
	method := c.Method
	if method == http.MethodHead {
		method = http.MethodGet
	}
	for i := range s.routes {
		if r := &s.routes[i]; r.path == c.route {
			if r.method == method {
				return r, nil
			}
			allowed = append(allowed, r.method)
		}
	}
	return nil, allowed
}

// nothing writes the response to requests that match no route.
func (s *Server) nothing(c *call, allowed []string) {
	if len(allowed) == 0 {
		s.fail(c, fault.New(fault.NotFound, "there is no %s %.200s; %s/openapi.json lists the routes", c.Method, c.URL.Path, s.cfg.Prefix))
		return
	}
	list := strings.Join(allowed, ", ")
	c.w.Header().Set("Allow", list)
	s.fail(c, c.refuse(http.StatusMethodNotAllowed, wire.InvalidRequest, c.Method+" is not a method of this route; use "+list+"."))
}
