package agh

import (
	"errors"
	"io"
	"math"
	"net/http"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/parley-hub/parley/dialect/agh/wire"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/internal/answers"
	"github.com/parley-hub/parley/internal/turns"
)

// call is one request that is being answered.
type call struct {
	*http.Request
	w   http.ResponseWriter
	s   *Server
	who Who
	may *operation

	share *answers.Answer // memory and reads of the answer
}

// handler serves a route to callers whose role may call it. Each route checks which
// parts of the data the caller may see.
func (s *Server) handler(o *operation) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := &call{Request: r, w: w, s: s, who: s.cfg.Who(r), may: o}
		err := c.allowed()
		if err == nil && s.cfg.Disabled && r.URL.Path != statusPath {
			err = errDisabled
		}
		c.share = s.cfg.Answers.For(c.who.Key, c.turn())
		defer c.share.Close()        // also after a panic
		if err == nil && !o.stream { // a stream takes a turn for each message
			err = c.share.Begin(r.Context(), s.cfg.Limits.Write)
		}
		if err == nil {
			err = o.serve(c)
		}
		if err != nil {
			c.refuse(err)
		}
	})
}

// reads reports whether the request changes nothing.
func (c *call) reads() bool { return c.Method == http.MethodGet || c.Method == http.MethodHead }

// turn returns the turn that is needed to read logs; nil: none is needed.
func (c *call) turn() *turns.Turn {
	if c.who.Role == Nobody || c.who.Role == Operator || !c.reads() {
		return nil
	}
	return c.s.hub.Reading(answers.Reader(c.who.Key))
}

var errDisabled = fault.New(fault.Unavailable, "the AGH network is switched off; set agh.enabled to true")

// allowed refuses roles that may never call the route.
func (c *call) allowed() error {
	switch {
	case c.who.Role == Nobody:
		return fault.New(fault.AuthFailed, "%s %s needs a key: send Authorization: Bearer with a token that parley keys add made", c.Method, c.URL.Path)
	case c.who.Role == Operator, c.who.Role == Reader && c.may.reader != no, c.who.Role == Agent && c.may.agent != no:
		return nil
	}
	return fault.New(fault.AccessDenied, "%s %s is not allowed for this key's role", c.Method, c.URL.Path)
}

// errMethod refuses a method that the path does not have.
var errMethod = fault.New(fault.Invalid, "this path does not take the method")

// nothing answers requests that match no route.
func (c *call) nothing() error {
	var allowed []string
	for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodDelete} {
		probe := c.Clone(c.Context())
		probe.Method = method
		if _, pattern := c.s.mux.Handler(probe); pattern != base+"/" {
			allowed = append(allowed, method)
		}
	}
	if allowed == nil {
		return fault.New(fault.NotFound, "there is no %s %.200s; %s/openapi.json lists the routes", c.Method, c.URL.Path, base)
	}
	list := strings.Join(allowed, ", ")
	c.w.Header().Set("Allow", list)
	return fault.Wrap(fault.Invalid, errMethod, "%s is not a method of this route; use %s", c.Method, list)
}

// statusOf returns the HTTP status of a refusal.
func statusOf(err error) int {
	if _, ok := errors.AsType[*wire.Rejection](err); ok {
		return http.StatusBadRequest
	}
	if errors.Is(err, errMethod) {
		return http.StatusMethodNotAllowed
	}
	switch fault.CodeOf(err) {
	case fault.NotFound:
		return http.StatusNotFound
	case fault.AccessDenied:
		return http.StatusForbidden
	case fault.AuthFailed:
		return http.StatusUnauthorized
	case fault.Protocol, fault.Conflict:
		return http.StatusConflict
	case fault.Invalid, fault.TooLarge:
		return http.StatusBadRequest
	case fault.InboxFull, fault.RateLimited:
		return http.StatusTooManyRequests
	case fault.Gap:
		return http.StatusGone
	case fault.Unavailable, fault.SlowReader:
		return http.StatusServiceUnavailable
	}
	return http.StatusInternalServerError
}

// failure is the body of a refusal.
type failure struct {
	Error      string     `json:"error"`
	Diagnostic diagnostic `json:"diagnostic"`
}

type diagnostic struct {
	Code   string `json:"code"`
	Reason string `json:"reason,omitempty"`
}

// rawTokenCode is AGH's code for a claim token in a message.
const rawTokenCode = "network_raw_token_rejected"

var errRawToken = fault.New(fault.Invalid, "%s: body and ext must not hold a claim token", rawTokenCode)

// refuse answers with an error.
func (c *call) refuse(err error) {
	status := statusOf(err)
	f := failure{err.Error(), diagnostic{string(fault.CodeOf(err)), reasonOf(err)}}
	if errors.Is(err, errRawToken) {
		f.Diagnostic.Code = rawTokenCode
	}
	if status == http.StatusInternalServerError {
		c.s.cfg.Log.Error("an AGH request failed", "method", c.Method, "path", c.URL.Path, "error", err)
		f.Error = http.StatusText(status)
	}
	if status == http.StatusUnauthorized {
		c.w.Header().Set("WWW-Authenticate", `Bearer realm="parley"`)
	}
	if known, ok := errors.AsType[*fault.Error](err); ok && known.RetryAfter > 0 {
		c.w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(known.RetryAfter.Seconds()))))
	}
	if text, err := json.Marshal(f, json.Deterministic(true)); err == nil {
		c.write(status, text)
	}
}

// reasonOf returns the protocol's reason of a refusal, or the hub's.
func reasonOf(err error) string {
	var r *wire.Rejection
	if errors.As(err, &r) {
		return string(r.Reason)
	}
	why := fault.ReasonOf(err)
	if r, ok := lifecycle[why]; ok {
		return string(r)
	}
	return string(why)
}

// answer writes a JSON answer.
func (c *call) answer(status int, body any) error {
	text, err := json.Marshal(body, json.Deterministic(true))
	if err != nil {
		return fault.Wrap(fault.Internal, err, "%v", err)
	}
	c.share.Read(len(text))
	// The result of a change is always written, even if the caller's other answers are
	// not read.
	if err := c.share.Keep(int64(len(text))); err != nil && c.reads() {
		return err
	}
	c.write(status, text)
	return nil
}

// write writes JSON that is already counted, or short.
func (c *call) write(status int, text []byte) {
	c.share.EndTurn()
	h := c.w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	c.w.WriteHeader(status)
	_, _ = c.w.Write(append(text, '\n')) // the client may have disconnected
}

// read decodes the request's body. It refuses unknown and duplicate members and wrong
// types.
func (c *call) read(into any) error {
	data, err := c.body()
	if err != nil {
		return err
	}
	return decodeBody(data, into)
}

func (c *call) body() ([]byte, error) {
	data, err := io.ReadAll(c.Body)
	if err == nil {
		return data, nil
	}
	if large, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return nil, fault.New(fault.TooLarge, "the request's body has more than %d bytes", large.Limit)
	}
	return nil, fault.Wrap(fault.Invalid, err, "the request's body cannot be read: %v", err)
}

func decodeBody(data []byte, into any) error {
	err := json.Unmarshal(data, into, json.RejectUnknownMembers(true))
	var wrong *json.SemanticError
	switch {
	case errors.As(err, &wrong) && errors.Is(wrong.Err, json.ErrUnknownName): // its text has names of Go types
		return fault.Wrap(fault.Invalid, err, "the request's body has the member %.100q, which is not one of this request", wrong.JSONPointer.LastToken())
	case errors.As(err, &wrong) && wrong.JSONPointer == "":
		return fault.Wrap(fault.Invalid, err, "the request's body is not a JSON object")
	case errors.As(err, &wrong):
		return fault.Wrap(fault.Invalid, err, "%.100q of the request's body has the wrong JSON type: a %s", wrong.JSONPointer, wrong.JSONKind)
	case err != nil:
		return fault.Wrap(fault.Invalid, err, "the request's body is not valid JSON: %v", err)
	}
	return nil
}

// limit reads the parameter limit; 0 is none.
func (c *call) limit() (int, error) {
	q := c.URL.Query()
	if !q.Has("limit") {
		return 0, nil
	}
	n, err := strconv.Atoi(q.Get("limit"))
	if err != nil || n <= 0 {
		return 0, fault.New(fault.Invalid, "`limit` is a positive whole number, not %.40q", q.Get("limit"))
	}
	return n, nil
}

// space returns the workspace of the path.
func (c *call) space() (*space, error) { return c.s.find(c.PathValue("workspace_id")) }

// channel returns the workspace and channel of the path, if the caller may see it.
func (c *call) channel() (*netChannel, error) {
	sp, err := c.space()
	if err != nil {
		return nil, err
	}
	r, err := sp.find(c.PathValue("channel"))
	if err != nil {
		return nil, err
	}
	return r, c.sees(r)
}

// inSpace returns a route for a function that needs the workspace of the path.
func inSpace(serve func(*call, *space) error) func(*call) error {
	return func(c *call) error {
		sp, err := c.space()
		if err != nil {
			return err
		}
		return serve(c, sp)
	}
}

// inChannel returns a route for a function that needs the channel of the path.
func inChannel(serve func(*call, *netChannel) error) func(*call) error {
	return func(c *call) error {
		r, err := c.channel()
		if err != nil {
			return err
		}
		return serve(c, r)
	}
}

// agentID returns the identity of an agent's key; empty: it is not registered.
func (c *call) agentID() string {
	id, _ := c.s.hub.FindAgent(c.who.Agent)
	return id
}

// sees refuses a channel that the caller's agent is not joined to.
func (c *call) sees(r *netChannel) error {
	if c.who.Role != Agent || r.has(c.agentID()) {
		return nil
	}
	return fault.New(fault.AccessDenied, "%q is not joined to the channel %q", c.who.Agent, r.channel)
}

// owns refuses the session of another agent.
func (c *call) owns(p *peer) error {
	if c.who.Role == Operator || c.who.Role == Agent && p.agent == c.agentID() {
		return nil
	}
	return fault.New(fault.AccessDenied, "the session %q does not belong to this key's agent", p.session)
}

// seesDirect refuses a direct room that the caller may not see.
func (c *call) seesDirect(r *netChannel, peers []string) error {
	switch c.who.Role {
	case Operator:
		return nil
	case Agent:
		id := c.agentID()
		for _, name := range peers {
			if p := r.hosted(name); p != nil && p.agent == id {
				return nil
			}
		}
	}
	return fault.New(fault.AccessDenied, "a direct room is shown to its two peers and to operators")
}
