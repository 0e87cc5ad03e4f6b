// Package api serves Parley's own HTTP interface under /v1: JSON, and server
// sent events where something is followed. It shows what the hub knows in our
// own words; it never speaks a dialect and never stores anything.
package api

import (
	"cmp"
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/url"
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

// Config says what is served. The zero value of each field but Hub is a
// sensible one.
type Config struct {
	Hub *hub.Hub
	// Backup writes an archive of the running store; nil refuses backups.
	Backup func(ctx context.Context, w io.Writer) error
	// Cluster tells how the cluster is that the hub is served by; nil: it is alone.
	Cluster func() *ClusterHealth
	Version string
	Name    string       // of the hub, for people; those who are signed in are told
	Log     *slog.Logger // nil: slog.Default()
	// Keys and Sessions are who may ask. Nil: nobody can sign in here.
	Keys     *access.Keys
	Sessions *access.Sessions
	// Stats is what the hub measures of itself; nil: nothing is kept.
	Stats *stats.Recorder
	// RefusedAtDoor counts the requests and connections that never reached the
	// hub, by reason; nil: nobody counts them.
	RefusedAtDoor func() map[string]int64
	// Chat runs what is said in chat sessions; nil: nothing. ChatUser is whose an
	// operator's are.
	Chat     *chat.Service
	ChatUser func(ctx context.Context) (string, error)
	// Stands tells whether who asked may still be answered: a stream ends when
	// its key is revoked. Nil: always.
	Stands func(access.Principal) bool
	// Stopping is closed when the server drains: streams end then. Nil never.
	Stopping func(ctx context.Context) <-chan struct{}
	// Warnings tells what those who take part in a channel over a dialect will
	// run into there; Takes and TakesOpening refuse what could never reach
	// them. Nil: nothing.
	Warnings     func(ctx context.Context, m *channel.Metadata) ([]string, error)
	Takes        func(e *envelope.Envelope) error
	TakesOpening func(o hub.Opening) error

	// Answers are those of every dialect that are being made or read; nil: a
	// budget of its own.
	Answers *answers.Budget
	Limits  Limits
}

// Limits bound what clients can make the interface hold. Zero is the default
// given with each.
type Limits struct {
	Body      int64         // limits.body: 2 MiB of a request
	Import    int64         // limits.import: 1 GiB of a bundle
	Followers int           // limits.followers: 10,000 streams at once
	Page      int           // limits.page: 1,000 entries of one answer
	PageBytes int           // 4 MiB of one answer of a list; an entry that is larger stands alone
	Search    int64         // limits.search: 8 MiB of a log that one search reads
	View      int64         // 64 MiB of a log that one view is made of; four times as much for all at once
	Write     time.Duration // limits.follower_write: 10 s to take what is written
	States    int           // limits.states: 64 channels whose past states are kept
	KeepAlive time.Duration // limits.keep_alive: 15 s of silence until a comment is sent
}

// API is the handler of /v1.
type API struct {
	cfg       Config
	hub       *hub.Hub
	started   time.Time
	log       *slog.Logger
	views     *view.Registry
	followers chan struct{}
	viewing   atomic.Int64 // bytes of the logs that views are being made of
	pasts     *pasts
	backingUp atomic.Bool
	slow      atomic.Int64 // readers that were cut off

	slowReaders logsample.Limiter
	importing   atomic.Bool
	mux         *http.ServeMux

	titles    titles
	summaries summaries
	watches   watches
	rechecks  chan chan struct{} // holds what is closed when keys or sessions change
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

// everythingElse is the pattern of what no route serves.
const everythingElse = "/v1/"

// nothing answers where no route does: the path may be served by other methods.
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

// ServeHTTP answers a request that has passed the guard.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) { a.mux.ServeHTTP(w, r) }

// BodyOf bounds the body of a request. A bundle takes as long as it comes.
func (a *API) BodyOf(r *http.Request) dialect.Body {
	if r.Method == http.MethodPost && r.URL.Path == importPath {
		return dialect.Body{Bytes: a.cfg.Limits.Import, Time: -1}
	}
	return dialect.Body{Bytes: a.cfg.Limits.Body}
}

// call is a request with who makes it.
type call struct {
	http.ResponseWriter
	*http.Request
	who    caller
	answer *answers.Answer
}

// handle turns a route's function into a handler: who asks is settled first,
// and an error becomes a problem.
func (a *API) handle(rt route) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		who, err := a.caller(r)
		if err == nil {
			err = who.may(rt.role)
		}
		if err == nil {
			err = checkQuery(r)
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

// served serves a route. How often lists are made, and how fast logs are read, is
// bounded, but for operators.
func (a *API) served(rt route, c *call) error {
	switch {
	case c.who.Has(access.Operator):
		return rt.serve(c)
	case logReads[rt.answer] && !rt.stream: // the others take turns where they know what is wanted
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
	a.hub.Listed(who, int(c.answer.Held()))
	return err
}

// readingTurn is whose turn it must be to read logs for an answer; nil: that is not
// bounded.
func (a *API) readingTurn(rt route, who caller) *turns.Turn {
	if who.Has(access.Operator) || !logReads[rt.answer] {
		return nil
	}
	return a.hub.Reading(answers.Reader(who.Key))
}

// logReads are the answers that are made of logs.
var logReads = map[string]bool{
	"EventPage": true, "ChannelEventPage": true, "Export": true, "View": true, "Messages": true, "PastState": true, "Graph": true, "PathPage": true,
}

// lists are the answers that cost most for what is asked.
var lists = map[string]bool{"AgentPage": true, "ChannelPage": true, "TaskPage": true}

// checkQuery refuses parameters that would otherwise be left out in silence.
func checkQuery(r *http.Request) error {
	if _, err := url.ParseQuery(r.URL.RawQuery); err != nil {
		return fault.Wrap(fault.Invalid, err, "the parameters of the address are not well formed: %v; write %% as %%25 and ; as %%3B", err)
	}
	return nil
}

// caller is who asks: an operator, a reader, or an agent with its id.
type caller struct {
	access.Principal
	id string // of the agent, if the key is one's and it is registered
}

func (a *API) caller(r *http.Request) (caller, error) {
	who := caller{Principal: access.From(r.Context())}
	if who.Role == access.Agent {
		who.id, _ = a.hub.FindAgent(who.Agent)
	}
	return who, nil
}

// may refuses who has not the rights of a role. An agent may read, of what it
// may see, and act for itself; the handlers hold it to that.
func (c caller) may(role access.Role) error {
	if c.Has(role) || c.Has(access.Operator) || c.Role == access.Agent && role != access.Operator {
		return nil
	}
	if c.Role == access.Anonymous {
		return fault.New(fault.AuthFailed, "a key is needed: send Authorization: Bearer TOKEN; an operator makes one with parley keys add")
	}
	return fault.New(fault.AccessDenied, "a key of role %s is needed; yours is of role %s", role, c.Role).Because(fault.NeedsRole)
}

// hub is the caller as the hub knows it.
func (c caller) hub() *hub.Caller {
	by := c.Caller()
	if c.id != "" {
		by.Agents = []string{c.id}
	}
	return by
}

// as is the hub as the caller has it.
func (a *API) as(c *call) hub.Access { return a.hub.As(c.who.hub()) }

// sees reports whether the caller may look into everything.
func (c caller) seesAll() bool { return c.Has(access.Reader) }

// write answers with JSON.
func (c *call) write(status int, answer any) error {
	data, err := encode(answer)
	if err != nil {
		return err
	}
	// What the answer was made of is no longer held. Whatever was done is told,
	// however much waits.
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
	c.answer.EndTurn() // a reader who does not read holds up nobody else
	c.Header().Set("Content-Type", "application/json")
	c.Header().Set("Cache-Control", "no-store")
	c.WriteHeader(status)
	_, _ = c.ResponseWriter.Write(append(data, '\n'))
	return nil
}

// Header is the answer's; the request's is c.Request.Header.
func (c *call) Header() http.Header { return c.ResponseWriter.Header() }

// Write is not used: answers go through write and raw.
func (c *call) Write(b []byte) (int, error) { return c.ResponseWriter.Write(b) }

// read decodes the request's body, strictly.
func (c *call) read(into any) error { return body.Read(c.Body, into) }

// readOptional is read where an empty body counts as an empty object.
func (c *call) readOptional(into any) error { return body.ReadOptional(c.Body, into) }
