package hpd

import (
	"github.com/parley-hub/parley/dialect/hpd/wire"
	"github.com/parley-hub/parley/internal/openapi"
	"github.com/parley-hub/parley/internal/sse"
)

// body describes the request and the response of a route.
type body struct {
	in       any      // a value of the request's type; nil: none
	needs    []string // members that a request must have
	optional bool     // the request's body may be left out
	status   int
	out      any    // a value of the answer's type; nil: none
	kind     string // of an answer that is not JSON
	query    []param
}

// param is a parameter of the query.
type param struct{ name, kind, says string }

// event is any envelope.
type event struct{}

// form is an upload.
type form struct{}

type anyOf = openapi.AnyOf

// textInput is the short form of an input.
type textInput struct {
	Text          string   `json:"text"`
	RunConfig     wire.Raw `json:"runConfig,omitzero"`
	ClientInputID *string  `json:"clientInputId,omitzero"`
}

// interruption is the short form of INTERRUPTION_REQUEST.
type interruption struct {
	Reason      *string `json:"reason,omitzero"`
	EventFlowID *string `json:"eventFlowId,omitzero"`
}

var (
	runQuery    = []param{{"runtimeRunId", "string", "the run; else the first event names it"}}
	resuming    = []param{{"after", "string", "go on behind this position, or behind this sequence number"}}
	inputForms  = anyOf{textInput{}, event{}}
	accepted    = wire.RespondResult{}
	pageQuery   = []param{{"limit", "integer", "at most so many"}, {"offset", "integer", "leave out so many first"}}
	eventsQuery = []param{{"after", "string", "only events behind this position or sequence number"}, {"limit", "integer", "at most so many"}}
	listQuery   = []param{
		{"limit", "integer", "at most so many"},
		{"offset", "integer", "leave out so many first"},
		{"sortBy", "string", "createdAt or lastActivity"},
		{"sortDirection", "string", "asc or desc"},
		{"foreign", "boolean", "true: channels of other dialects too"},
		{"count", "boolean", "true: tell in the header Parley-Total how many there are; 1000+ is at least so many"},
	}
)

// content adds the descriptions of the four content routes below a base.
func content(base string, into map[string]body) {
	into["POST "+base] = body{in: form{}, status: 201, out: wire.ContentInfo{}}
	into["GET "+base] = body{status: 200, out: []wire.ContentInfo{}}
	into["GET "+base+"/{}"] = body{status: 200, kind: "*/*"}
	into["DELETE "+base+"/{}"] = body{status: 204}
}

// bodiesOf returns the description of every route, by method and path.
func bodiesOf() map[string]body {
	all := map[string]body{
		"GET /openapi.json": {status: 200, out: map[string]wire.Raw{}},

		"POST /sessions":                {in: wire.CreateSession{}, optional: true, status: 201, out: wire.Session{}},
		"GET /sessions":                 {status: 200, out: []wire.Session{}, query: listQuery},
		"POST /sessions/search":         {in: wire.SearchSessions{}, optional: true, status: 200, out: []wire.Session{}},
		"GET /sessions/{}":              {status: 200, out: wire.Session{}},
		"PATCH /sessions/{}":            {in: wire.UpdateSession{}, optional: true, status: 200, out: wire.Session{}},
		"DELETE /sessions/{}":           {status: 204},
		"GET /sessions/{}/thread-graph": {status: 200, out: wire.ThreadGraph{}},
		"GET /sessions/{}/branches":     {status: 200, out: []wire.Branch{}},

		"POST /agents/{}/sessions/{}/branches": {in: wire.CreateBranch{}, optional: true, status: 201, out: wire.Branch{}},
		"GET " + branchPath:                    {status: 200, out: wire.Branch{}},
		"PATCH " + branchPath:                  {in: wire.UpdateBranch{}, optional: true, status: 200, out: wire.Branch{}},
		"DELETE " + branchPath:                 {status: 204, query: []param{{"recursive", "boolean", "with everything that was forked from it"}}},
		"GET " + branchPath + "/siblings":      {status: 200, out: []wire.Branch{}},
		"GET " + branchPath + "/events":        {status: 200, out: []event{}, query: eventsQuery},

		"GET /agents":       {status: 200, out: []wire.AgentSummary{}},
		"POST /agents":      {in: wire.CreateAgent{}, needs: []string{"name", "config"}, status: 201, out: wire.StoredAgent{}},
		"GET /agents/{}":    {status: 200, out: wire.StoredAgent{}},
		"PUT /agents/{}":    {in: wire.UpdateAgent{}, needs: []string{"config"}, status: 200, out: wire.StoredAgent{}},
		"DELETE /agents/{}": {status: 204},

		"GET " + agentPath + "/ws":          {status: 101},
		"GET " + agentPath + "/events/live": {status: 200, kind: sse.ContentType, query: resuming},
		"POST " + agentPath + "/fork":       {in: wire.ForkBranch{}, needs: []string{"fromMessageId"}, status: 201, out: wire.Branch{}},
		"POST " + agentPath + "/inputs":     {in: inputForms, status: 202, out: wire.InputAccepted{}},
		"POST " + agentPath + "/interrupt":  {in: anyOf{interruption{}, event{}}, optional: true, status: 202},
		"POST " + agentPath + "/responses":  {in: event{}, status: 200, out: accepted},
		"GET " + agentPath + "/requests":    {status: 200, out: []wire.OpenRequest{}},
		"GET " + agentPath + "/runs":        {status: 200, out: []wire.Run{}, query: pageQuery},
		"GET " + agentPath + "/runs/active": {status: 200, out: anyOf{wire.Run{}, nil}},
		"GET " + agentPath + "/runs/{}":     {status: 200, out: wire.Run{}},

		"GET /agents/{}/work":                     {status: 200, kind: sse.ContentType},
		"POST " + agentPath + "/events":           {in: anyOf{event{}, []event{}}, status: 202, out: wire.Published{}, query: runQuery},
		"POST " + agentPath + "/requests":         {in: event{}, status: 202, out: wire.Asked{}, query: runQuery},
		"POST " + agentPath + "/runs/{}/complete": {in: wire.CompleteRun{}, needs: []string{"status"}, status: 200, out: wire.Completed{}},

		"POST " + agentPath + "/stream":        {in: inputForms, status: 200, kind: sse.ContentType},
		"POST " + agentPath + "/events/stream": {in: inputForms, status: 200, kind: sse.ContentType},
	}
	for _, word := range []string{"permissions", "continuation", "clarifications", "client-tools"} {
		all["POST "+agentPath+"/"+word+"/respond"] = body{in: event{}, status: 200, out: accepted}
	}
	content(branchPath+"/content", all)
	content("/sessions/{}/content", all)
	return all
}
