package hpd

import (
	"cmp"
	"context"
	"errors"
	"time"

	adapter "github.com/parley-hub/parley/adapter/branch"
	"github.com/parley-hub/parley/dialect/hpd/wire"
	"github.com/parley-hub/parley/fault"
)

// decided returns the answer to a permission that was decided permanently in its
// session, or nil.
func (s *Server) decided(ctx context.Context, x *run, question wire.Payload) (wire.Payload, error) {
	q, ok := question.(wire.PermissionRequest)
	if !ok {
		return nil, nil
	}
	state, err := s.state(ctx, x.scope.session.main)
	if err != nil {
		return nil, err
	}
	allowed, known := state.Permission(q.FunctionName)
	if !known {
		return nil, nil
	}
	answer := wire.PermissionResponse{PermissionID: q.PermissionID, SourceName: q.SourceName, Approved: allowed, Choice: wire.DenyAlways}
	if allowed {
		answer.Choice = wire.AllowAlways
	}
	return answer, nil
}

// decide stores a permanent answer with its session, before the producer acts on
// it.
func (s *Server) decide(ctx context.Context, x *run, question, answer wire.Payload) error {
	q, isPermission := question.(wire.PermissionRequest)
	a, _ := answer.(wire.PermissionResponse)
	if !isPermission || a.Choice != wire.AllowAlways && a.Choice != wire.DenyAlways {
		return nil
	}
	sender, err := s.user(ctx)
	if err != nil {
		return err
	}
	err = s.note(ctx, x.scope.session.main, sender, adapter.TypePermission, adapter.Permission{Function: q.FunctionName, Allowed: a.Approved}, noExt)
	if fault.CodeOf(err) == fault.TooLarge {
		return nil // a name that is too long to store is asked for each time
	}
	return err
}

// noDescription is the description of a function that has none.
const noDescription = "No description available"

// Permit asks whether a tool may be called, and returns the decision. It does not
// ask again after a permanent decision for the session and the function; no answer
// in time is a denial. The permissions of a run are asked for one after another.
// The id, the source and the description of the request may be left out.
func (r *Run) Permit(ctx context.Context, q wire.PermissionRequest, timeout time.Duration) (allowed bool, reason string, err error) {
	if q.PermissionID == "" {
		q.PermissionID = newID()
	}
	q.SourceName = cmp.Or(q.SourceName, "PermissionMiddleware")
	if deref(q.Description) == "" {
		q.Description = new(noDescription)
	}
	r.run.permitting.Lock()
	defer r.run.permitting.Unlock()
	answer, err := r.Ask(ctx, q, timeout)
	var unanswered *RunError
	switch {
	case errors.As(err, &unanswered) && unanswered.Type == string(wire.TimedOut):
		reason = "Permission request timed out: nobody answered in time."
	case err != nil:
		return false, "", err
	default:
		a, _ := answer.(wire.PermissionResponse)
		if allowed = a.Approved; !allowed {
			reason = "Permission was denied."
			if text := deref(a.Reason); text != "" {
				reason = text
			}
		}
	}
	if allowed {
		return true, "", r.Publish(ctx, wire.PermissionApproved{PermissionID: q.PermissionID, SourceName: q.SourceName})
	}
	return false, reason, r.Publish(ctx, wire.PermissionDenied{PermissionID: q.PermissionID, SourceName: q.SourceName, CallID: q.CallID, Reason: reason})
}
