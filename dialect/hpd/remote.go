package hpd

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"slices"
	"time"

	adapter "github.com/parley-hub/parley/adapter/branch"
	"github.com/parley-hub/parley/dialect/hpd/wire"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub"
	"github.com/parley-hub/parley/view/branch"
)

// remoteRun finds the active run of a branch that a remote producer names.
func (s *Server) remoteRun(c *call, x *scope, id string) (*run, error) {
	active := s.runs.get(x.channel)
	switch {
	case active == nil:
		return nil, errNoRun(x.branch)
	case id == "":
		return nil, fault.New(fault.Invalid, "the run is not named; add ?runtimeRunId=, or `runtimeRunId` in the first event")
	case id != active.id || !active.remote:
		return nil, fault.New(fault.Conflict, "Run '%.100s' is not active on branch '%s'.", id, x.branch).Because(fault.NoRun)
	}
	return active, mayProduce(c.who, active.name)
}

func (s *Server) postEvents(c *call) error {
	data, err := c.body()
	if err != nil {
		return err
	}
	events, err := s.cfg.Registry.ParsePublished(data, s.wireLimits())
	if err != nil {
		return err
	}
	x, err := s.scope(c)
	if err != nil {
		return err
	}
	id := c.URL.Query().Get("runtimeRunId")
	for i, e := range events {
		switch {
		case i == 0 && id == "":
			id = e.RunID
		case e.RunID != "" && e.RunID != id:
			return fault.New(fault.Conflict, "event %d belongs to run '%.100s', the others to '%.100s'; send the events of one run", i, e.RunID, id).Because(fault.NoRun)
		}
	}
	active, err := s.remoteRun(c, x, id)
	if err != nil {
		return err
	}
	if err := s.publishKeyed(context.WithoutCancel(c.Context()), active, events, c.Header.Get("Idempotency-Key")); err != nil {
		return err
	}
	return c.write(http.StatusAccepted, wire.Published{Accepted: len(events)})
}

func (s *Server) postRequest(c *call) error {
	data, err := c.body()
	if err != nil {
		return err
	}
	e, _, err := s.cfg.Registry.ParseAsked(data, s.wireLimits())
	if err != nil {
		return err
	}
	x, err := s.scope(c)
	if err != nil {
		return err
	}
	id := cmp.Or(c.URL.Query().Get("runtimeRunId"), e.RunID)
	active, err := s.remoteRun(c, x, id)
	if err != nil {
		return err
	}
	var timeout time.Duration
	if e.TimeoutSeconds != nil {
		timeout = time.Duration(min(*e.TimeoutSeconds, maxTimeout.Seconds()) * float64(time.Second))
	}
	a, err := s.ask(context.WithoutCancel(c.Context()), active, e, timeout, func(response *wire.Event, _ hub.Request) { s.answered(active, response) })
	if err != nil {
		return err
	}
	return c.write(http.StatusAccepted, wire.Asked{RequestID: a.request.RequestID})
}

// answered passes an answer to a remote producer, also to one that reconnects
// later.
func (s *Server) answered(x *run, response *wire.Event) {
	if response == nil {
		return
	}
	x.mu.Lock()
	x.answers = append(x.answers, response)
	x.mu.Unlock()
	s.notify(x, "response", responseFrame(x, response))
}

func (s *Server) postComplete(c *call) error {
	var in wire.CompleteRun
	if err := c.read(&in); err != nil {
		return err
	}
	how := outcome{}
	switch in.Status {
	case wire.RunCompleted:
	case wire.RunCancelled:
		how.cancelled = true
	case wire.RunFailed:
		how.errorType, how.message = "ProducerFailed", "The producer failed the run."
		if in.Error != nil {
			how.message = in.Error.Message
			if in.Error.Code != "" {
				how.errorType = in.Error.Code
			}
		}
	default:
		return fault.New(fault.Invalid, "`status` is %.40q; it is completed, failed or cancelled", in.Status)
	}
	x, err := s.scope(c)
	if err != nil {
		return err
	}
	active := s.runs.get(x.channel)
	if active == nil || active.id != c.item {
		return s.completedBefore(c, x, how)
	}
	if err := mayProduce(c.who, active.name); err != nil {
		return err
	}
	if !active.remote {
		return fault.New(fault.Conflict, "run '%s' belongs to a producer inside the hub; only that producer ends it", active.id)
	}
	how.reported = how.digest()
	ended, err := s.complete(context.WithoutCancel(c.Context()), active, how)
	if fault.ReasonOf(err) == fault.NoRun {
		<-active.over
		return s.completedBefore(c, x, how)
	}
	if err != nil {
		return err
	}
	return c.write(http.StatusOK, wire.Completed{Status: ended.status()})
}

// object is a small JSON body.
type object = map[string]any

// digest identifies a reported end in a few bytes.
func (o outcome) digest() string {
	sum := sha256.Sum256([]byte(o.status() + "\x00" + o.errorType + "\x00" + o.message))
	return hex.EncodeToString(sum[:16])
}

func (o outcome) status() string {
	switch {
	case o.cancelled:
		return wire.RunCancelled
	case o.errorType != "":
		return wire.RunFailed
	}
	return wire.RunCompleted
}

// completedBefore writes the response for a run that has already ended. It accepts
// the same end again, and also an end that was reported before and then replaced by
// an interruption.
func (s *Server) completedBefore(c *call, x *scope, how outcome) error {
	events, err := s.runEvents(c.Context(), x, c.item)
	if err == nil && (len(events) == 0 || !mintedID.MatchString(c.item)) {
		err = errNoRunOf(c.item, x.branch)
	}
	if err == nil {
		err = mayProduce(c.who, s.hub.Name(events[0].Agent))
	}
	if err != nil {
		return err
	}
	all, err := s.project(c.Context(), x, events)
	if err != nil {
		return err
	}
	run := all[0]
	same := run.Status == how.status()
	if same && run.Error != nil {
		same = deref(run.Error.Type) == how.errorType && deref(run.Error.Message) == how.message
	}
	if !same && run.Status == wire.RunCancelled {
		i := slices.IndexFunc(events, func(e adapter.RunEvent) bool { return e.Type == branch.BranchRunCompleted })
		end, err := s.eventAt(c.Context(), x.channel, events[i].Seq)
		if err != nil {
			return err
		}
		same = branch.ParseExt(end.Ext).Reported == how.digest()
	}
	if !same {
		return fault.New(fault.Conflict, "Run '%s' has ended as %s.", run.RuntimeRunID, run.Status).Because(fault.NoRun)
	}
	return c.write(http.StatusOK, wire.Completed{Status: run.Status})
}

// workOf reads the messages of a run from its beginning in the log.
func (s *Server) workOf(ctx context.Context, x *scope, turn string, from uint64) ([]wire.ChatMessage, error) {
	var h branch.History
	for e, err := range s.hub.Log(ctx, x.channel, from, from+hub.MaxAdmitAll) {
		if err != nil {
			return nil, err
		}
		if ext := branch.ParseExt(e.Ext); !ext.Server || ext.Flow != turn {
			continue
		}
		if event, ok := branch.FromEnvelope(e); ok && whole[event.Type] {
			h.Apply(event)
		}
	}
	return h.Messages(), nil
}
