package hub

import (
	"bytes"
	"context"

	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/hub/internal/schema"
	"github.com/parley-hub/parley/journal"
	"github.com/parley-hub/parley/request"
)

// RequestEvent is a request that was asked or has ended.
type RequestEvent struct {
	Request  Request // as it is now
	Position WidePosition
}

// RequestFollower follows the requests of all channels.
type RequestFollower struct {
	hub   *Hub
	query RequestQuery
	wide  *WideFollower
}

// FollowRequests follows the requests that a query selects after a position: each
// is shown when it is asked and when it has ended. State, order and paging of the
// query do not count.
func (h *Hub) FollowRequests(ctx context.Context, q RequestQuery, after WidePosition) (*RequestFollower, error) {
	wide, err := h.FollowAll(ctx, WideOptions{After: after, requests: true})
	if err != nil {
		return nil, err
	}
	q.State = ""
	return &RequestFollower{hub: h, query: q, wide: wide}, nil
}

// Close ends the follower.
func (f *RequestFollower) Close() { f.wide.Close() }

// Next waits for the next request. A position that does not exist is answered
// with a *WideGap.
func (f *RequestFollower) Next(ctx context.Context) (RequestEvent, error) {
	for {
		ev, err := f.wide.Next(ctx)
		if err != nil {
			return RequestEvent{}, err
		}
		r, err := f.hub.Request(ctx, requestOf(ev.Envelope))
		if Deleted(err) {
			continue
		}
		if err != nil {
			return RequestEvent{}, err
		}
		shown, err := f.hub.SeesRequest(ctx, &r, f.query.As)
		if err != nil {
			return RequestEvent{}, err
		}
		if shown && f.query.selects(rowOf(&r)) {
			return RequestEvent{Request: r, Position: ev.Position}, nil
		}
	}
}

// requestOf is the id of the request that an envelope tells of.
func requestOf(e *envelope.Envelope) string {
	if e.Type == request.TypeRequest {
		return e.ID
	}
	return e.Causation
}

// requestEnvelope reads the envelope of a side record that tells of a request;
// nil is another record.
func requestEnvelope(entry journal.Entry) (*envelope.Envelope, error) {
	if !bytes.Contains(entry.Data, []byte(`"`+schema.SideRequest)) {
		return nil, nil
	}
	r, err := schema.DecodeSide(entry.Data)
	if err != nil || r.Kind != schema.SideRequest && r.Kind != schema.SideRequestEnded {
		return nil, nil
	}
	return envelope.Unmarshal(r.Envelope)
}
