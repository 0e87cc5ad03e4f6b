package hpd

import (
	"github.com/parley-hub/parley/dialect/hpd/wire"
	"github.com/parley-hub/parley/view/branch"
)

// legacyRoutes returns the routes of the oldest clients, which start a run and read
// its events in one call, and answer each kind of request at a route of its own.
func (s *Server) legacyRoutes() []route {
	return []route{
		{"POST", agentPath + "/stream", toWrite, "InputError", "Starts a run and streams it to its end; older clients' form of inputs.", s.postStream},
		{"POST", agentPath + "/events/stream", toWrite, "InputError", "The same, with an input event as body.", s.postStream},
		{"POST", agentPath + "/permissions/respond", toWrite, wire.BidirectionalResponse, "Answers a permission request; older clients' form of responses.", s.respondAs(branch.PermissionResponse)},
		{"POST", agentPath + "/continuation/respond", toWrite, wire.BidirectionalResponse, "Answers a continuation request; older clients' form of responses.", s.respondAs(branch.ContinuationResponse)},
		{"POST", agentPath + "/clarifications/respond", toWrite, wire.BidirectionalResponse, "Answers a clarification request; older clients' form of responses.", s.respondAs(branch.ClarificationResponse)},
		{"POST", agentPath + "/client-tools/respond", toWrite, wire.BidirectionalResponse, "Answers a client tool request; older clients' form of responses.", s.respondAs(branch.ClientToolInvokeResponse)},
	}
}

// postStream starts a run and streams its events, up to its end. The run continues
// if the reader disconnects.
func (s *Server) postStream(c *call) error {
	in, err := s.readInput(c)
	if err != nil {
		return err
	}
	x, err := s.scope(c)
	if err != nil {
		return err
	}
	return s.stream(c, x, "", func(w *watching) error {
		run, err := s.startRun(c.Context(), x, c.agent, in, c.who)
		if err == nil {
			w.run = run.id
		}
		return err
	})
}

// respondAs returns a handler for responses of one type, which the body need not
// name.
func (s *Server) respondAs(name string) func(*call) error {
	return func(c *call) error {
		data, err := c.body()
		if err != nil {
			return err
		}
		e, err := s.cfg.Registry.ParseResponseAs(name, data, s.wireLimits())
		if err != nil {
			return err
		}
		return s.takeResponse(c, e)
	}
}
