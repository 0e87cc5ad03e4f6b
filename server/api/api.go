// Package api serves Parley's HTTP interface under /v1: JSON, and server-sent events
// for streams. It has Parley's own names for what the hub stores; it never speaks a
// dialect and never stores anything.
package api

import (
	"cmp"
	"context"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub"
	"github.com/parley-hub/parley/internal/answers"
	"github.com/parley-hub/parley/internal/logsample"
	"github.com/parley-hub/parley/internal/turns"
	"github.com/parley-hub/parley/server/access"
	"github.com/parley-hub/parley/server/body"
	"github.com/parley-hub/parley/server/chat"
	"github.com/parley-hub/parley/server/dialect"
	"github.com/parley-hub/parley/server/problem"
	"github.com/parley-hub/parley/server/stats"
	"github.com/parley-hub/parley/view"
)

// Config says what is served. Each field but Hub may be zero.
type Config struct {
	Hub *hub.Hub
	// Backup writes an archive of the running store; nil refuses backups.
	Backup func(ctx context.Context, w io.Writer) error
	// Cluster returns the state of the cluster; nil: the hub is not in one.
	Cluster func() *ClusterHealth
	Version string
	Name    string       // of the hub, for people; shown to callers who are signed in
	Log     *slog.Logger // nil: slog.Default()
	// Keys and Sessions identify callers. Nil: nobody can sign in.
	Keys     *access.Keys
	Sessions *access.Sessions
	// Stats has the hub's measurements; nil: there are none.
	Stats *stats.Recorder
	// RefusedAtDoor counts the requests and connections that never reached the
	// hub, by reason; nil: they are not counted.
	RefusedAtDoor func() map[string]int64
	// Chat runs chat sessions; nil: there are none. ChatUser is the identity that
	// owns an operator's sessions.
	Chat     *chat.Service
	ChatUser func(ctx context.Context) (string, error)
	// Stands reports whether a principal's key or session is still valid: streams
	// end when it is not. Nil: always.
	Stands func(access.Principal) bool
	// Stopping returns a channel that is closed when the server drains: streams end
	// then. Nil: never.
	Stopping func(ctx context.Context) <-chan struct{}
	// Warnings returns what will not work for participants of a channel that are
	// connected over a dialect; Takes and TakesOpening refuse what could never be
	// delivered to them. Nil: nothing.
	Warnings     func(ctx context.Context, m *channel.Metadata) ([]string, error)
	Takes        func(e *envelope.Envelope) error
	TakesOpening func(o hub.Opening) error

	// Answers bounds the answers of all dialects that are being made or sent; nil: a
	// budget for this interface alone.
	Answers *answers.Budget
	Limits  Limits
}

// Limits bound what clients can make the interface hold. The default of each is in
// its comment.
type Limits struct {
	Body      int64         // limits.body: 2 MiB of a request
	Import    int64         // limits.import: 1 GiB of a bundle
	Followers int           // limits.followers: 10,000 streams at once
	Page      int           // limits.page: 1,000 entries of one answer
	PageBytes int           // 4 MiB of one answer of a list; a larger entry is a page by itself
	Search    int64         // limits.search: 8 MiB of a log are read for one search
	View      int64         // 64 MiB of a log are read for one view; four times as much for all views together
	Write     time.Duration // limits.follower_write: 10 s until a reader must have taken a write
	States    int           // limits.states: past states are kept of 64 channels
	KeepAlive time.Duration // limits.keep_alive: a comment is sent after 15 s of silence
}

// API is the handler of /v1.
type API struct {
	cfg       Config
	hub       *hub.Hub
	started   time.Time
	log       *slog.Logger
	views     *view.Registry
	followers chan struct{}
	viewing   atomic.Int64 // bytes of logs held by views that are being made
	pasts     *pasts
	backingUp atomic.Bool
	slow      atomic.Int64 // readers that were cut off

	slowReaders logsample.Limiter
	importing   atomic.Bool
	mux         *http.ServeMux

	titles    titles
	summaries summaries
	watches   watches
	rechecks  chan chan struct{} // holds a channel that is closed when keys or sessions change
}

// New makes the handler.
func New(cfg Config) *API {
	cfg.Log = cmp.Or(cfg.Log, slog.Default())
	if cfg.Stands == nil {
		cfg.Stands = func(access.Principal) bool { return true }
	}
	if cfg.RefusedAtDoor == nil {
		cfg.RefusedAtDoor = func() map[string]int64 { return map[string]int64{} }
	}
	if cfg.Stopping == nil {
		cfg.Stopping = func(context.Context) <-chan struct{} { return nil }
	}
	if cfg.Warnings == nil {
		cfg.Warnings = func(context.Context, *channel.Metadata) ([]string, error) { return nil, nil }
	}
	if cfg.Takes == nil {
		cfg.Takes = func(*envelope.Envelope) error { return nil }
	}
	if cfg.TakesOpening == nil {
		cfg.TakesOpening = func(hub.Opening) error { return nil }
	}
	if cfg.Answers == nil {
		cfg.Answers = answers.New(0)
	}
	l := &cfg.Limits
	l.Body = cmp.Or(l.Body, 2<<20)
	l.Import = cmp.Or(l.Import, 1<<30)
	l.Followers = cmp.Or(l.Followers, 10_000)
	l.Page = cmp.Or(l.Page, 1_000)
	l.PageBytes = cmp.Or(l.PageBytes, 4<<20)
	l.View = cmp.Or(l.View, 64<<20)
	l.States = cmp.Or(l.States, 64)
	l.Search = cmp.Or(l.Search, 8<<20)
	l.Write = cmp.Or(l.Write, 10*time.Second)
	l.KeepAlive = cmp.Or(l.KeepAlive, 15*time.Second)
	a := &API{
		cfg: cfg, hub: cfg.Hub, started: time.Now().UTC(), log: cfg.Log, pasts: newPasts(cfg.Limits.States), views: view.NewRegistry(),
		followers: make(chan struct{}, l.Followers), mux: http.NewServeMux(),
		rechecks: make(chan chan struct{}, 1),
	}
	a.watches.api = a
	a.rechecks <- make(chan struct{})
	if cfg.Keys != nil {
		cfg.Keys.OnChange(a.recheck)
	}
	for _, route := range a.routes() {
		a.mux.HandleFunc(route.method+" "+route.path, a.handle(route))
	}
	a.mux.HandleFunc(everythingElse, a.nothing)
	return a
}

// everythingElse is the pattern of paths that no route serves.
const everythingElse = "/v1/"

// nothing answers requests that no route serves; other methods may serve the path.
func (a *API) nothing(w http.ResponseWriter, r *http.Request) {
	var allowed []string
	for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodDelete} {
		other := r.Clone(r.Context())
		other.Method = method
		if _, pattern := a.mux.Handler(other); pattern != everythingElse {
			allowed = append(allowed, method)
		}
	}
	if allowed == nil {
		problem.Write(w, fault.New(fault.NotFound, "there is no %s %s; /v1/openapi.json lists the routes", r.Method, r.URL.Path))
		return
	}
	list := strings.Join(allowed, ", ")
	w.Header().Set("Allow", list)
	problem.WriteStatus(w, http.StatusMethodNotAllowed, fault.New(fault.Invalid, "%s is not possible at %s; it is %s", r.Method, r.URL.Path, list))
}

// Followers is how many streams are open.
func (a *API) Followers() int { return len(a.followers) }

// SlowReaders is how many streams were cut off because their reader was slow.
func (a *API) SlowReaders() int64 { return a.slow.Load() }

// ServeHTTP answers a request that passed the guard.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) { a.mux.ServeHTTP(w, r) }

// BodyOf bounds the body of a request. The body of a bundle has no deadline.
func (a *API) BodyOf(r *http.Request) dialect.Body {
	if r.Method == http.MethodPost && r.URL.Path == importPath {
		return dialect.Body{Bytes: a.cfg.Limits.Import, Time: -1}
	}
	return dialect.Body{Bytes: a.cfg.Limits.Body}
}

// call is a request with its caller.
type call struct {
	http.ResponseWriter
	*http.Request
	who    caller
	answer *answers.Answer
}

// handle turns a route's function into a handler: it identifies the caller first,
// and writes an error as a problem.
func (a *API) handle(rt route) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		who, err := a.caller(r)
		if err == nil {
			err = who.may(rt.role)
		}
		if err == nil {
			err = rt.checkQuery(r)
		}
		if err == nil {
			r.Body = http.MaxBytesReader(w, r.Body, a.BodyOf(r).Bytes)
			c := &call{ResponseWriter: w, Request: r, who: who}
			c.answer = a.cfg.Answers.For(who.Key, a.readingTurn(rt, who))
			defer c.answer.Close() // also after a panic
			err = a.served(rt, c)
			c.answer.EndTurn()
		}
		if err != nil {
			if fault.CodeOf(err) == fault.Internal {
				a.log.Error("request failed", "method", r.Method, "path", r.URL.Path, "error", err)
			}
			problem.Write(w, a.named(placed(err)))
		}
	}
}

// served serves a route. Except for operators, the rate of lists and of reads of
// logs is bounded.
func (a *API) served(rt route, c *call) error {
	switch {
	case c.who.Has(access.Operator):
		return rt.serve(c)
	case logReads[rt.answer] && !rt.stream: // streams take turns later, when they know what they read
		if err := c.answer.Begin(c.Context(), a.cfg.Limits.Write); err != nil {
			return err
		}
		return rt.serve(c)
	case !lists[rt.answer]:
		return rt.serve(c)
	}
	who := answers.Reader(c.who.Key)
	if err := a.hub.MayList(who); err != nil {
		return err
	}
	err := rt.serve(c)
	a.hub.Listed(who, int(c.answer.Used()))
	return err
}

// readingTurn returns the turn that a caller must have to read logs for an answer;
// nil: no turn is needed.
func (a *API) readingTurn(rt route, who caller) *turns.Turn {
	if who.Has(access.Operator) || !logReads[rt.answer] {
		return nil
	}
	return a.hub.Reading(answers.Reader(who.Key))
}

// logReads are the answers that are made from logs.
var logReads = map[string]bool{
	"EventPage": true, "ChannelEventPage": true, "Export": true, "View": true, "Messages": true, "PastState": true, "Graph": true, "PathPage": true,
}

// lists are the answers that cost most to make.
var lists = map[string]bool{"AgentPage": true, "ChannelPage": true, "TaskPage": true}

// caller identifies who makes a request: an operator, a reader, or an agent.
type caller struct {
	access.Principal
	id string // of the agent, if the key is an agent's and the agent is registered
}

func (a *API) caller(r *http.Request) (caller, error) {
	who := caller{Principal: access.From(r.Context())}
	if who.Role == access.Agent {
		who.id, _ = a.hub.FindAgent(who.Agent)
	}
	return who, nil
}

// may refuses a caller without the rights of a role. Agents pass where readers do:
// the handlers limit them to what they may see and to acting for themselves.
func (c caller) may(role access.Role) error {
	if c.Has(role) || c.Has(access.Operator) || c.Role == access.Agent && role != access.Operator {
		return nil
	}
	if c.Role == access.Anonymous {
		return fault.New(fault.AuthFailed, "a key is needed: send Authorization: Bearer TOKEN; an operator makes one with parley keys add")
	}
	return fault.New(fault.AccessDenied, "a key of role %s is needed; yours is of role %s", role, c.Role).Because(fault.NeedsRole)
}

// hub returns the caller in the hub's form.
func (c caller) hub() *hub.Caller {
	by := c.Caller()
	if c.id != "" {
		by.Agents = []string{c.id}
	}
	return by
}

// as returns the hub with the caller's rights.
func (a *API) as(c *call) hub.Access { return a.hub.As(c.who.hub()) }

// seesAll reports whether the caller may read everything.
func (c caller) seesAll() bool { return c.Has(access.Reader) }

// write answers with JSON.
func (c *call) write(status int, answer any) error {
	data, err := encode(answer)
	if err != nil {
		return err
	}
	// The answer's source is released here. The result of a change is always sent,
	// even if it exceeds the caller's share.
	if err := c.answer.Keep(int64(len(data))); err != nil && c.reads() {
		return err
	}
	return c.raw(status, data)
}

// reads reports whether the request changes nothing.
func (c *call) reads() bool { return c.Method == http.MethodGet || c.Method == http.MethodHead }

// counted counts what is encoded for an answer while the answer is made.
func counted[T any](c *call, encode func(T) ([]byte, error)) func(T) ([]byte, error) {
	return func(item T) ([]byte, error) {
		data, err := encode(item)
		if err == nil {
			err = c.answer.Hold(int64(len(data)))
		}
		return data, err
	}
}

// encode writes an answer, or a part of one, as JSON. What was stored as JSON
// comes out as it went in, its escapes included; the same answer has the same bytes.
func encode(answer any) ([]byte, error) {
	return json.Marshal(answer, json.Deterministic(true), jsontext.EscapeForHTML(false), jsontext.PreserveRawStrings(true))
}

func (c *call) raw(status int, data []byte) error {
	c.answer.Read(len(data))
	c.answer.EndTurn() // so that a slow reader does not hold up others
	c.Header().Set("Content-Type", "application/json")
	c.Header().Set("Cache-Control", "no-store")
	c.WriteHeader(status)
	_, _ = c.ResponseWriter.Write(append(data, '\n'))
	return nil
}

// Header is the answer's; the request's is c.Request.Header.
func (c *call) Header() http.Header { return c.ResponseWriter.Header() }

// read decodes the request's body and refuses unknown members.
func (c *call) read(into any) error { return body.Read(c.Body, into) }

// readOptional is read where an empty body counts as an empty object.
func (c *call) readOptional(into any) error { return body.ReadOptional(c.Body, into) }
