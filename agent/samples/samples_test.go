package samples_test

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/parley-hub/parley/agent/samples"
	"github.com/parley-hub/parley/conformance/spec"
	"github.com/parley-hub/parley/dialect/hpd/wire"
	"github.com/parley-hub/parley/fault"
)

// playout is a sample of an agent.
type playout struct {
	samples.Owned `json:"-"`
	QueuedMs      int64  `json:"queuedMs"`
	Device        string `json:"device"`
}

func (playout) SampleKind() string { return "audio.playout" }

// depth is a sample of a library.
type depth struct{ Depth int }

func (depth) SampleKind() string { return "queue.depth" }

func route[T samples.Sample](t *spec.T, h *samples.Hub, o samples.RouteOptions) *samples.Route[T] {
	t.Helper()
	r, err := samples.RouteOf[T](h, o)
	t.NoError(err)
	return r
}

func subscribe[T samples.Sample](t *spec.T, r *samples.Route[T], o samples.SubscribeOptions) *samples.Inbox[T] {
	t.Helper()
	inbox, err := r.Subscribe(o)
	t.NoError(err)
	t.Cleanup(inbox.Close)
	return inbox
}

func drain(inbox *samples.Inbox[depth]) string {
	var out []string
	for {
		s, ok := inbox.TryRead()
		if !ok {
			return strings.Join(out, " ")
		}
		out = append(out, fmt.Sprintf("%d:%d", s.Sequence, s.Value.Depth))
	}
}

func TestRoutes(t *testing.T) {
	t.Parallel()
	spec.Check(t, "seed-003#86: a route gives its samples to all its subscribers", func(t *spec.T) {
		h := &samples.Hub{}
		r := route[depth](t, h, samples.RouteOptions{Sequenced: true})
		t.NoError(r.Emit(t.Context(), 1, depth{9})) // before anybody listens
		one, two := subscribe(t, r, samples.SubscribeOptions{}), subscribe(t, r, samples.SubscribeOptions{})
		t.NoError(r.Emit(t.Context(), 1, depth{10}))
		t.NoError(r.EmitBatch(t.Context(), 2, []depth{{11}, {12}}))
		t.Equal(drain(one), "2:10 3:11 4:12")
		two.Close()
		two.Close()
		t.NoError(r.Emit(t.Context(), 3, depth{13}))
		t.Equal(drain(one), "5:13")
		t.Equal(drain(two), "2:10 3:11 4:12")
		t.Equal(r.Stats(), samples.Stats{Emitted: 5, Delivered: 7, Subscribers: 1})
		other := route[playout](t, h, samples.RouteOptions{})
		t.NoError(other.Emit(t.Context(), 0, playout{}))
		t.Equal(h.Stats(), samples.Stats{Emitted: 6, Delivered: 7, Subscribers: 1})
		t.Equal(h.Routes()["audio.playout"].Emitted, uint64(1))
		_, err := samples.RouteOf[depth](h, samples.RouteOptions{})
		t.ErrorContains(err, "Sequenced")
		t.Equal(fault.CodeOf(err), fault.Conflict)
		_, err = r.Subscribe(samples.SubscribeOptions{Buffer: samples.MaxBuffer + 1})
		t.ErrorContains(err, "1 to 1048576")
	})
	spec.Check(t, "seed-003#88: a full reader that drops slows nobody", func(t *spec.T) {
		r := route[depth](t, &samples.Hub{}, samples.RouteOptions{})
		oldest := subscribe(t, r, samples.SubscribeOptions{Buffer: 2, Overflow: samples.DropOldest})
		newest := subscribe(t, r, samples.SubscribeOptions{Buffer: 2, Overflow: samples.DropNewest})
		whole := subscribe(t, r, samples.SubscribeOptions{Buffer: 8})
		for i := range 5 {
			t.NoError(r.Emit(t.Context(), 0, depth{i}))
		}
		t.Equal(drain(oldest), "0:3 0:4")
		t.Equal(drain(newest), "0:0 0:1")
		t.Equal(drain(whole), "0:0 0:1 0:2 0:3 0:4")
		t.Equal([]uint64{oldest.Dropped(), newest.Dropped(), whole.Dropped(), r.Stats().Dropped}, []uint64{3, 3, 0, 6})
	})
	t.Run("backpressure waits for room, for the end of its context, or for the reader to leave", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			c := &spec.T{T: t}
			r := route[depth](c, &samples.Hub{}, samples.RouteOptions{})
			inbox := subscribe(c, r, samples.SubscribeOptions{Buffer: 1})
			c.NoError(r.Emit(t.Context(), 0, depth{1}))
			done := make(chan error, 1)
			go func() { done <- r.Emit(t.Context(), 0, depth{2}) }()
			synctest.Wait()
			c.Equal(len(done), 0)
			c.Equal(drain(inbox), "0:1")
			c.NoError(<-done)
			ctx, cancel := context.WithCancel(t.Context())
			go func() { done <- r.Emit(ctx, 0, depth{3}) }()
			synctest.Wait()
			cancel()
			c.ErrorIs(<-done, context.Canceled)
			go func() { done <- r.Emit(t.Context(), 0, depth{4}) }()
			synctest.Wait()
			inbox.Close()
			c.NoError(<-done)
			c.Equal(drain(inbox), "0:2")
			c.ErrorIs(inbox.Wait(t.Context()), samples.ErrClosed)
		})
	})
	t.Run("many emitters, in sequence", func(t *testing.T) {
		t.Parallel()
		c := &spec.T{T: t}
		r := route[depth](c, &samples.Hub{}, samples.RouteOptions{Sequenced: true})
		inbox := subscribe(c, r, samples.SubscribeOptions{Buffer: 4})
		var emitters sync.WaitGroup
		for range 8 {
			emitters.Go(func() {
				for i := range 50 {
					_ = r.Emit(t.Context(), 0, depth{i})
				}
			})
		}
		for want := uint64(1); want <= 400; want++ {
			c.NoError(inbox.Wait(t.Context()))
			s, ok := inbox.TryRead()
			c.True(ok && s.Sequence == want, "sample %d is next, not %d", want, s.Sequence)
		}
		emitters.Wait()
	})
}

func TestEmittingAllocatesNothing(t *testing.T) {
	c := &spec.T{T: t}
	r := route[depth](c, &samples.Hub{}, samples.RouteOptions{Sequenced: true})
	ctx := context.Background()
	emit := func() { _ = r.Emit(ctx, 1, depth{1}) }
	c.Equal(testing.AllocsPerRun(100, emit), 0.0)
	subscribe(c, r, samples.SubscribeOptions{Overflow: samples.DropOldest})
	c.Equal(testing.AllocsPerRun(100, emit), 0.0)
}

func TestObserve(t *testing.T) {
	t.Parallel()
	spec.Check(t, "seed-003#85: the samples of one type reach a callback", func(t *spec.T) {
		h := &samples.Hub{}
		var got []int64
		synctest.Test(t.T, func(bubble *testing.T) {
			ctx, stop := context.WithCancel(bubble.Context())
			done := make(chan error, 1)
			go func() {
				done <- samples.Observe(ctx, h, func(s samples.Stamped[playout]) { got = append(got, s.Value.QueuedMs) })
			}()
			synctest.Wait()
			c := &spec.T{T: bubble}
			c.NoError(route[playout](c, h, samples.RouteOptions{}).EmitBatch(ctx, 7, []playout{{QueuedMs: 20}, {QueuedMs: 40}}))
			c.NoError(route[depth](c, h, samples.RouteOptions{}).Emit(ctx, 7, depth{1}))
			synctest.Wait()
			stop()
			c.NoError(<-done)
		})
		t.Equal(got, []int64{20, 40})
		t.Equal(h.Stats().Subscribers, 0)
	})
}

func TestSamplesAreNoEvents(t *testing.T) {
	t.Parallel()
	spec.Check(t, "seed-003#79: a sample has a type of its own and cannot be published as an event", func(t *spec.T) {
		event := reflect.TypeFor[wire.Payload]()
		t.False(reflect.TypeFor[playout]().Implements(event), "a sample is an event's payload")
		t.False(reflect.TypeFor[samples.Stamped[playout]]().Implements(event), "a stamped sample is an event's payload")
	})
	spec.Check(t, "seed-003#80: what a sample is exported as does not parse as an event", func(t *spec.T) {
		var x samples.Exporter
		t.NoError(samples.Export[playout](&x, "AUDIO_PLAYOUT"))
		text, err := samples.Append(&x, nil, samples.Stamped[playout]{Value: playout{QueuedMs: 1}})
		t.NoError(err)
		_, err = wire.NewRegistry(nil).Parse(text, wire.Limits{})
		t.ErrorContains(err, "not registered")
	})
	spec.Check(t, "seed-003#82: agent-owned samples carry a marker over the general contract", func(t *spec.T) {
		marker := reflect.TypeFor[samples.AgentSample]()
		t.True(reflect.TypeFor[playout]().Implements(marker), "an agent's sample has the marker")
		t.False(reflect.TypeFor[depth]().Implements(marker), "a library's has it")
	})
}

func TestExport(t *testing.T) {
	t.Parallel()
	spec.Check(t, "seed-003#83: an envelope of its own, written and read", func(t *spec.T) {
		var x samples.Exporter
		t.NoError(samples.Export[playout](&x, "audio.playout"))
		sent := samples.Stamped[playout]{Sequence: 3, Time: 1 << 60, Value: playout{QueuedMs: 20, Device: "é"}}
		text, err := samples.Append(&x, []byte("> "), sent)
		t.NoError(err)
		t.Equal(string(text), `> {"version":"1.0","type":"audio.playout","sequenceNumber":3,"timestampNs":1152921504606846976,"queuedMs":20,"device":"é"}`)
		t.True(json.Valid(text[2:]), "it is JSON")
		got, err := x.Read(text[2:])
		t.NoError(err)
		t.True(got == any(sent), "%v reads back as %v", sent, got)
	})
	spec.Check(t, "seed-003#83: an unregistered type is an error to write, nothing to read", func(t *spec.T) {
		var x samples.Exporter
		_, err := samples.Append(&x, nil, samples.Stamped[depth]{})
		t.ErrorContains(err, "not registered")
		got, err := x.Read([]byte(`{"type":"queue.depth","Depth":1}`))
		t.NoError(err)
		t.Equal(got, nil)
		t.NoError(samples.Export[depth](&x, "queue.depth"))
		t.ErrorContains(samples.Export[depth](&x, "other"), "registered once")
		t.ErrorContains(samples.Export[playout](&x, "queue.depth"), "registered once")
		for _, odd := range []string{``, `[]`, `{"type":"queue.depth","Depth":"x"}`, `{"type":"queue.depth","x":` + strings.Repeat("[", 100) + strings.Repeat("]", 100) + `}`} {
			_, err := x.Read([]byte(odd))
			t.Equal(fault.CodeOf(err), fault.Invalid)
		}
	})
	spec.Check(t, "seed-003#84: exporting publishes nothing", func(t *spec.T) {
		h := &samples.Hub{}
		r := route[depth](t, h, samples.RouteOptions{})
		inbox := subscribe(t, r, samples.SubscribeOptions{})
		var x samples.Exporter
		t.NoError(samples.Export[depth](&x, "queue.depth"))
		_, err := samples.Append(&x, nil, samples.Stamped[depth]{Value: depth{1}})
		t.NoError(err)
		t.Equal(drain(inbox), "")
		t.Equal(h.Stats().Emitted, uint64(0))
	})
}
