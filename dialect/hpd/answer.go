package hpd

import (
	"bytes"
	"errors"
	"io"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/parley-hub/parley/dialect/hpd/wire"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/internal/answers"
)

// call is one request and its route.
type call struct {
	*http.Request
	path
	w      http.ResponseWriter
	who    Who
	code   string // of the route's errors
	answer *answers.Answer
	reads  bool // the route changes nothing
	// missing is true if no session has the id of the path.
	missing bool
	data    []byte // the body, once it was read
}

// refusal is an error with a status and a code of its own.
type refusal struct {
	problem *wire.Problem
}

func (r *refusal) Error() string { return r.problem.Title }

func (c *call) refuse(status int, code, message string) error {
	return &refusal{wire.NewProblem(c.surface, status, code, message)}
}

// write writes a body with the member names of the surface.
func (c *call) write(status int, body any) error {
	data, err := json.Marshal(body, json.Deterministic(true))
	if err != nil {
		return fault.Wrap(fault.Internal, err, "the answer cannot be written: %v", err)
	}
	data = c.surface.Body(data)
	c.answer.Read(len(data))
	// The result of a change is always written, even if the caller does not
	// read its other answers.
	if err := c.answer.Keep(int64(len(data))); err != nil && c.reads {
		return err
	}
	return c.writeRaw(status, data)
}

func (c *call) writeRaw(status int, data []byte) error {
	c.answer.EndTurn()
	c.w.Header().Set("Content-Type", "application/json")
	c.w.WriteHeader(status)
	_, _ = c.w.Write(data) // a client that is gone needs no answer
	return nil
}

func (c *call) empty(status int) error {
	c.w.WriteHeader(status)
	return nil
}

// location sets the Location header to a path below the prefix, with the surface's
// own segment. It never contains a token of the request's path.
func (s *Server) location(c *call, parts ...string) {
	c.w.Header().Set("Location", s.cfg.Prefix+"/"+strings.Join(parts, "/"))
}

// locationOfRun sets the Location header to a run's path. Unlike the ids of
// sessions and branches, an agent's id may need escaping.
func (s *Server) locationOfRun(c *call, session, branch, id string) {
	s.location(c, "agents", url.PathEscape(c.agent), "sessions", session, c.surface.Segment(), branch, "runs", id)
}

// body reads the whole body as well-formed text. The server has bounded its size.
func (c *call) body() ([]byte, error) {
	if c.data != nil {
		return c.data, nil
	}
	data, err := io.ReadAll(c.Body)
	if tooLarge, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return nil, fault.New(fault.TooLarge, "the body is over %d bytes (limits.body); send large contents by the upload route, POST …/content", tooLarge.Limit)
	}
	if err != nil {
		return nil, fault.Wrap(fault.Invalid, err, "the body could not be read to its end")
	}
	c.data = wire.WellFormed(data)
	return c.data, nil
}

// read reads a body into a struct. No body reads as an empty object; unknown
// members are ignored, and members of either surface are understood.
func (c *call) read(into any) error {
	data, err := c.body()
	if err != nil || len(bytes.TrimSpace(data)) == 0 {
		return err
	}
	err = json.Unmarshal(wire.Canonical(data), into)
	var wrong *json.SemanticError
	switch {
	case errors.As(err, &wrong) && wrong.JSONPointer == "":
		return fault.Wrap(fault.Invalid, err, "the body is %s; it is an object", wire.KindName(wrong.JSONKind))
	case errors.As(err, &wrong): // the error's own text names Go types
		return fault.Wrap(fault.Invalid, err, "%q of the body is %s, which is the wrong JSON type", wrong.JSONPointer, wire.KindName(wrong.JSONKind))
	case err != nil:
		return fault.Wrap(fault.Invalid, err, "the body is not valid JSON: %v", err)
	}
	return nil
}

var statuses = map[fault.Code]int{
	fault.NotFound: http.StatusNotFound, fault.AccessDenied: http.StatusForbidden, fault.AuthFailed: http.StatusUnauthorized,
	fault.Conflict: http.StatusConflict, fault.TooLarge: http.StatusRequestEntityTooLarge,
	fault.Invalid: http.StatusBadRequest, fault.Protocol: http.StatusBadRequest,
	fault.RateLimited: http.StatusTooManyRequests, fault.InboxFull: http.StatusTooManyRequests,
	fault.Unavailable: http.StatusServiceUnavailable, fault.SlowReader: http.StatusServiceUnavailable, fault.Gap: http.StatusGone,
}

// problemOf describes an error. The text of an error without a code is only
// logged.
func (c *call) problemOf(err error) *wire.Problem {
	if own, ok := errors.AsType[*refusal](err); ok {
		return own.problem
	}
	status, ok := statuses[fault.CodeOf(err)]
	if !ok {
		status = http.StatusInternalServerError
	}
	code := c.code
	switch fault.ReasonOf(err) {
	case fault.RunActive:
		code = wire.BranchRunActive
	case fault.NoRun:
		code = wire.BranchRunNotActive
	}
	message := err.Error()
	var known *fault.Error
	if status == http.StatusInternalServerError || !errors.As(err, &known) {
		message = "the hub could not do this; its log says why"
	}
	return wire.NewProblem(c.surface, status, code, message)
}

// drainBody is how much of an unread body is read, so that a client that is still
// sending sees the response.
const drainBody = 256 << 10

// fail writes an error as the response.
func (s *Server) fail(c *call, err error) {
	p := c.problemOf(err)
	if p.Status == http.StatusInternalServerError {
		s.log.Error("request failed", "route", c.route, "error", err)
	}
	_, _ = io.CopyN(io.Discard, c.Body, drainBody) // an end or an error is handled alike
	c.w.Header().Set("Content-Type", wire.ProblemType)
	if p.Status == http.StatusUnauthorized {
		c.w.Header().Set("WWW-Authenticate", `Bearer realm="parley"`)
	}
	if known, ok := errors.AsType[*fault.Error](err); ok && known.RetryAfter > 0 {
		c.w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(known.RetryAfter.Seconds()))))
	}
	c.w.WriteHeader(p.Status)
	_, _ = c.w.Write(p.JSON())
}
