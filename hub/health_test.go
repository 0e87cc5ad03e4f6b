package hub_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/conformance/spec"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub"
)

func (r *rig) health() hub.Health {
	r.t.Helper()
	s, err := r.Health(context.Background())
	if err != nil {
		r.t.Fatal(err)
	}
	return s
}

func TestHealth(t *testing.T) {
	t.Parallel()
	holds(t, "ag2-hub#114: a fresh hub counts nothing", hub.Options{}, func(t *spec.T, r *rig) {
		r.stop() // the harness has a listener; this hub has none
		r.opts.Listeners = nil
		r.start()
		data, err := json.Marshal(r.health())
		t.NoError(err)
		t.Equal(string(data), `{"active_channels":0,"registered_agents":0,"pending_inbox_total":0,"max_pending_inbox_depth":null,`+
			`"registered_listeners":1,"adapters_loaded":4,"audit_log_bytes":0,"telemetry_log_bytes":0}`)
	})
	holds(t, "ag2-hub#114: after use the counts match", byHand, func(t *spec.T, r *rig) {
		a, b, c := r.agent("alice"), r.agent("bob"), r.agent("carol")
		t.True(r.health().MaxPendingInboxDepth == nil, "nobody was told anything yet")
		first := r.open("conversation", a, b)
		r.open("discussion", a, b, c)
		ended := r.open("conversation", b, c)
		r.end(ended, "")
		c.ignoreInvites()
		go func() { _, _ = r.tryOpen("conversation", nil, a, c) }() // pending
		r.settle()
		for range 3 {
			r.say(a, first, "hello")
		}
		r.post(b, first, "my.own", `{}`)
		r.settle()
		s := r.health()
		t.Equal(*s.MaxPendingInboxDepth, int64(2)) // bob: three deliveries, one answered
		s.MaxPendingInboxDepth = nil
		var bytes int64
		page, _, err := r.AuditLog(context.Background(), hub.AuditQuery{})
		t.NoError(err)
		for _, line := range page {
			bytes += int64(len(line.Data)) + 1
		}
		t.True(bytes > 0, "something was audited")
		t.Equal(s, hub.Health{
			ActiveChannels: 3, RegisteredAgents: 3, PendingInboxTotal: 3, RegisteredListeners: 2, AdaptersLoaded: 4, AuditLogBytes: bytes,
		})
	})
	runs(t, "channels of before, and of adapters that are not loaded", byHand, func(t *testing.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		kept := r.open("conversation", a, b)
		r.open("discussion", a, b)
		r.end(r.open("discussion", a, b), "")
		r.restart()
		check := func(want int64) {
			t.Helper()
			if got := r.health().ActiveChannels; got != want {
				t.Fatalf("%d active channels, want %d", got, want)
			}
		}
		check(2)
		if n := r.Stats().ChannelsLoaded; n != 0 {
			t.Fatalf("counting loaded %d channels", n)
		}
		r.open("conversation", a, b)
		check(3)
		r.end(kept, "")
		check(2)
		r.restart(func(o *hub.Options) { o.Adapters = []channel.Adapter{o.Adapters[1]} })
		r.open("conversation", a, b) // opened before the first call
		check(2)
		check(2)
		if got := r.health().AuditLogBytes; got == 0 || got > 1000 {
			t.Fatalf("%d bytes of audit by this process", got)
		}
	})
}

func TestSweepers(t *testing.T) {
	t.Parallel()
	holds(t, "ag2-hub#121: custom sweepers tick, and stop with the hub", hub.Options{}, func(t *spec.T, r *rig) {
		var ticks atomic.Int64
		t.NoError(r.AddSweeper("mine", time.Minute, func(context.Context) {
			ticks.Add(1)
			panic("once more")
		}))
		r.pass(time.Minute - time.Second)
		t.Equal(ticks.Load(), int64(0))
		r.pass(time.Second)
		t.Equal(ticks.Load(), int64(1))
		r.pass(2 * time.Minute)
		t.Equal(ticks.Load(), int64(3))
		r.Close()
		r.pass(time.Hour)
		t.Equal(ticks.Load(), int64(3))
		t.ErrorContains(r.AddSweeper("late", time.Minute, func(context.Context) {}), "shutting down")
	})
	holds(t, "ag2-hub#121: closing waits for one that is under way", hub.Options{}, func(t *spec.T, r *rig) {
		ended := false
		t.NoError(r.AddSweeper("slow", time.Second, func(ctx context.Context) {
			<-ctx.Done()
			<-time.After(5 * time.Second)
			ended = true
		}))
		r.pass(time.Second)
		r.Close()
		t.True(ended, "the sweep has ended")
	})
	holds(t, "ag2-hub#121: duplicates and non-positive intervals are refused", hub.Options{}, func(t *spec.T, r *rig) {
		var first, second atomic.Int64
		t.NoError(r.AddSweeper("mine", time.Minute, func(context.Context) { first.Add(1) }))
		t.Equal(fault.CodeOf(r.AddSweeper("mine", time.Minute, func(context.Context) { second.Add(1) })), fault.Conflict)
		for _, every := range []time.Duration{0, -time.Second} {
			t.Equal(fault.CodeOf(r.AddSweeper("other", every, func(context.Context) { second.Add(1) })), fault.Invalid)
		}
		r.pass(time.Minute)
		t.Equal([]int64{first.Load(), second.Load()}, []int64{1, 0})
		t.True(r.RemoveSweeper("mine"), "there was one")
		t.False(r.RemoveSweeper("mine"), "there is one")
		t.NoError(r.AddSweeper("mine", time.Minute, func(context.Context) { second.Add(1) }))
		r.pass(time.Minute)
		t.Equal([]int64{first.Load(), second.Load()}, []int64{1, 1})
	})
}
