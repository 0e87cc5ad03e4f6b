package hpd

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-hub/parley/dialect/hpd/wire"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/internal/loop"
)

type flag = atomic.Bool

// newNonce returns a text that distinguishes this producer's calls from those
// of an earlier one.
func newNonce() string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // it never fails
	return hex.EncodeToString(b[:]) + "/"
}

// key returns the idempotency key of the n-th call of a run.
func (r *Run) key(n int) string { return r.nonce + r.Work.RuntimeRunID + "/" + strconv.Itoa(n) }

// registry reads the answers that the hub sends.
var registry = wire.NewRegistry(nil)

// Ask sends a question to the watchers of the branch, and waits for the answer.
// A question that was asked before, by this producer or the one before it, is
// not asked again.
func (r *Run) Ask(ctx context.Context, question wire.Payload) (*wire.Event, error) {
	e := &wire.Event{Payload: question}
	asked, ok := wire.RequestOf(e)
	if !ok {
		return nil, fault.New(fault.Invalid, "%s is not a request; publish it", question.EventType())
	}
	data, err := e.Append(nil, wire.Branches)
	if err != nil {
		return nil, err
	}
	answers := make(chan *wire.Event, 1)
	r.mu.Lock()
	if e := r.early[asked.RequestID]; e != nil {
		delete(r.early, asked.RequestID)
		answers <- e
	}
	r.waiting[asked.RequestID] = answers
	r.mu.Unlock()
	defer func() {
		r.mu.Lock()
		delete(r.waiting, asked.RequestID)
		r.mu.Unlock()
	}()
	if len(answers) == 0 {
		tries := 0
		err = r.client.persist(ctx, func() error {
			tries++
			return r.client.hub.Call(ctx, http.MethodPost, r.path()+"/requests?runtimeRunId="+r.Work.RuntimeRunID, jsontext.Value(data), nil)
		})
		before := fault.CodeOf(err) == fault.Conflict && (r.Work.Resumed || tries > 1)
		if err != nil && !before {
			return nil, r.over(err)
		}
	}
	select {
	case e := <-answers:
		return e, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-r.ctx.Done():
		return nil, r.ctx.Err()
	}
}

// maxEarly bounds the answers to questions that nobody has asked again.
const maxEarly = 1000

// answered passes an answer to the call that waits for it.
func (r *Run) answered(data []byte) error {
	e, err := registry.ParseResponse(data, wire.Limits{})
	if err != nil {
		return err
	}
	response, _ := wire.ResponseOf(e)
	r.mu.Lock()
	defer r.mu.Unlock()
	if to := r.waiting[response.RequestID]; to != nil {
		select {
		case to <- e:
		default: // the call has its answer
		}
	} else if len(r.early) < maxEarly {
		r.early[response.RequestID] = e
	}
	return nil
}

const (
	minPause = 50 * time.Millisecond
	maxPause = 2 * time.Second
)

// persist calls again until the hub answers with something other than unavailable.
func (c *Client) persist(ctx context.Context, call func() error) error {
	for pause := minPause; ; pause = min(pause*2, maxPause) {
		err := call()
		var refused *fault.Error
		if err == nil || errors.As(err, &refused) && refused.Code != fault.Unavailable && refused.Code != fault.Internal {
			return err
		}
		if ended := loop.Pause(ctx, pause); ended != nil {
			return errors.Join(ended, err)
		}
		c.hub.Relocate()
	}
}
