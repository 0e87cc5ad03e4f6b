package ag2_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/parley-hub/parley/dialect/ag2"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub"
)

func TestOpeningsLimit(t *testing.T) {
	t.Parallel()
	r := newRig(t, options{hub: hub.Options{InviteAckTimeout: time.Hour}, config: ag2.Config{Limits: ag2.Limits{Openings: 2}}})
	p, q := r.dial(), r.dial()
	alice, bob := p.register("alice"), q.register("bob")
	params := object{"creator_id": alice, "manifest_type": "conversation", "participants": []string{bob}}
	first, second := p.request("create_channel", params), p.request("create_channel", params)
	invites := []notice{q.notifiedOf("ag2.channel.invite"), q.notifiedOf("ag2.channel.invite")}
	if _, err := p.try("create_channel", params); err == nil || !strings.Contains(err.Error(), "ag2.limits.openings") {
		t.Fatalf("a third got %v", err)
	}
	for _, invite := range invites {
		q.ack(invite)
	}
	for _, request := range []string{first, second} {
		if _, err := p.response(request); err != nil {
			t.Fatal(err)
		}
	}
	// There is space again.
	third := p.request("create_channel", params)
	q.ack(q.notifiedOf("ag2.channel.invite"))
	if _, err := p.response(third); err != nil {
		t.Fatal(err)
	}
}

func TestIdentitiesLimit(t *testing.T) {
	t.Parallel()
	r := newRig(t, options{config: ag2.Config{Limits: ag2.Limits{Identities: 2}}})
	p, q := r.dial(), r.dial()
	q.register("carol")
	alice := p.register("alice")
	p.register("bob")
	if f := p.refused(`{"kind":"hello","name":"carol"}`); f.Code != "error" || !strings.Contains(f.Message, "ag2.limits.identities") {
		t.Errorf("a third got %+v", f)
	}
	p.hello("alice", nil) // this identity is on the connection already
	p.call("unregister", object{"agent_id": alice}, nil)
	p.hello("carol", nil)
}

// A request that waits behind too many others is not lost: the hub continues to
// read when there is space.
func TestRequestsLimit(t *testing.T) {
	t.Parallel()
	gate := make(chan struct{})
	r := newRig(t, options{
		wrap:   func(h *hub.Hub) ag2.Hub { return &stuck{Hub: h, gate: gate} },
		config: ag2.Config{Limits: ag2.Limits{Requests: 4}},
	})
	p := r.dial()
	requests := []string{p.request("find_agent_id", object{"name": "slow"})}
	for range 50 {
		requests = append(requests, p.request("find_agent_id", object{"name": "quick"}))
	}
	close(gate)
	for _, request := range requests {
		if raw, err := p.response(request); err != nil || string(raw) != "null" {
			t.Fatalf("%s got %s, %v", request, raw, err)
		}
	}
}

// An operator can read every channel and every task, and acts for nobody.
func TestOperator(t *testing.T) {
	t.Parallel()
	r := newRig(t, options{config: ag2.Config{Operator: func(*http.Request) func() bool { return func() bool { return true } }}})
	p, q, op := r.dial(), r.dial(), r.dial()
	alice, bob := p.register("alice"), q.register("bob")
	ch := p.open("conversation", alice, map[string]*peer{bob: q})
	p.call("observe_task", object{"metadata": object{"task_id": "t1", "owner_id": alice}}, nil)
	op.call("get_channel", object{"channel_id": ch}, nil)
	op.call("can_send", object{"channel_id": ch, "sender_id": alice}, nil)
	op.call("get_task", object{"task_id": "t1"}, nil)
	var list []object
	op.call("list_channels", object{}, &list)
	if len(list) != 1 {
		t.Errorf("an operator sees %d channels", len(list))
	}
	op.call("read_wal", object{"channel_id": ch}, &list)
	if len(list) != 3 {
		t.Errorf("an operator reads %d envelopes", len(list))
	}
	for name, params := range map[string]object{
		"set_skill":     {"agent_id": alice, "skill_md": "x"},
		"update_task":   {"task_id": "t1", "state": "failed"},
		"post_envelope": {"envelope": env(ch, alice, "ag2.msg.text", object{"text": "x"})},
	} {
		if _, err := op.try(name, params); err == nil || !strings.HasPrefix(err.Error(), "access_denied: ") {
			t.Errorf("%s got %v", name, err)
		}
	}
	p.call("checkpoint_task", object{"task_id": "unobserved", "state": object{"a": 1}}, nil)
	var state object
	if op.call("read_task_checkpoint", object{"task_id": "unobserved"}, &state); state["a"] != 1.0 {
		t.Errorf("an operator reads the checkpoint %v", state)
	}
	op.call("close_channel", object{"channel_id": ch}, nil)
}

// A connection is an operator's only while its key is valid.
func TestOperatorNoMore(t *testing.T) {
	t.Parallel()
	var revoked atomic.Bool
	r := newRig(t, options{config: ag2.Config{Operator: func(*http.Request) func() bool {
		return func() bool { return !revoked.Load() }
	}}})
	p, q, op := r.dial(), r.dial(), r.dial()
	alice, bob := p.register("alice"), q.register("bob")
	ch := p.open("conversation", alice, map[string]*peer{bob: q})
	op.call("get_channel", object{"channel_id": ch}, nil)
	revoked.Store(true)
	for _, name := range []string{"get_channel", "read_wal", "close_channel"} {
		if _, err := op.try(name, object{"channel_id": ch}); err == nil || !strings.HasPrefix(err.Error(), "access_denied: ") {
			t.Errorf("%s got %v", name, err)
		}
	}
	var list []object
	if op.call("list_channels", object{}, &list); len(list) != 0 {
		t.Errorf("it still sees %d channels", len(list))
	}
}

// Changes of a task by an AG2 client are posted to the task's channel while its
// owner's turn is in progress: the owner has received an envelope and has not
// acknowledged it.
func TestMirroredTasks(t *testing.T) {
	t.Parallel()
	tests := []struct {
		mirror ag2.Mirror
		want   []string
	}{
		{"", []string{"ag2.task.started", "ag2.task.completed"}},
		{ag2.MirrorAll, []string{"ag2.task.started", "ag2.task.progress", "ag2.task.completed"}},
		{ag2.MirrorOff, nil},
	}
	for _, tt := range tests {
		t.Run(string(tt.mirror), func(t *testing.T) {
			t.Parallel()
			r := newRig(t, options{config: ag2.Config{MirrorTasks: tt.mirror}})
			p, q := r.dial(), r.dial()
			alice, bob := p.register("alice"), q.register("bob")
			ch := p.open("conversation", alice, map[string]*peer{bob: q})
			run := func(id string) {
				q.call("observe_task", object{"metadata": object{"task_id": id, "owner_id": bob, "state": "running", "channel_id": ch}}, nil)
				q.call("update_task", object{"task_id": id, "progress": object{"page": 1}}, nil)
				q.call("update_task", object{"task_id": id, "state": "completed"}, nil)
			}
			run("outside a turn")
			p.say(ch, alice, "go on")
			trigger := q.notified()
			run("t1")
			q.receipt(trigger, "ack")
			run("after the turn")
			var log []object
			p.call("read_wal", object{"channel_id": ch, "since": 4}, &log)
			var got []string
			for _, e := range log {
				if e["task_id"] != "t1" || e["sender_id"] != bob {
					t.Errorf("told of %v", e)
				}
				got = append(got, e["event_type"].(string))
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("told %v, want %v", got, tt.want)
			}
		})
	}
	for _, s := range []string{"", "ends", "all", "off"} {
		if _, err := ag2.ParseMirror(s); err != nil {
			t.Errorf("%q: %v", s, err)
		}
	}
	if _, err := ag2.ParseMirror("some"); fault.CodeOf(err) != fault.Invalid {
		t.Errorf("some: %v", err)
	}
}

// Tasks that a connection may not read do not count against a list's limit.
func TestListTasksGoesOn(t *testing.T) {
	t.Parallel()
	r := newRig(t, options{})
	p, q := r.dial(), r.dial()
	alice, bob := p.register("alice"), q.register("bob")
	for i := range 60 {
		p.call("observe_task", object{"metadata": object{"task_id": fmt.Sprint("a", i), "owner_id": alice}}, nil)
	}
	q.call("observe_task", object{"metadata": object{"task_id": "b", "owner_id": bob}}, nil)
	var list []object
	q.call("list_tasks", object{"limit": 1}, &list)
	if len(list) != 1 || list[0]["task_id"] != "b" {
		t.Errorf("listed %v", list)
	}
	p.call("list_tasks", object{"limit": 55}, &list)
	if len(list) != 55 || list[54]["task_id"] != "a54" {
		t.Errorf("listed %d", len(list))
	}
}

// A list is limited to a frame, and entries that have not ended come first.
func TestListsStopAtAFrame(t *testing.T) {
	t.Parallel()
	r := newRig(t, options{})
	p, q := r.dial(), r.dial()
	alice, bob := p.register("alice"), q.register("bob")
	big := strings.Repeat("x", 100_000)
	for i := range 12 {
		id := fmt.Sprint("t", i)
		p.call("observe_task", object{"metadata": object{
			"task_id": id, "owner_id": alice, "state": "running", "progress": object{"log": big},
		}}, nil)
		if i < 4 {
			p.call("update_task", object{"task_id": id, "state": "completed"}, nil)
		}
	}
	var channels []string
	for i := range 4 {
		channels = append(channels, p.open("conversation", alice, map[string]*peer{bob: q}, object{"knobs": object{"note": strings.Repeat(big, 4)}}))
		if i == 0 {
			p.call("close_channel", object{"channel_id": channels[0]}, nil)
		}
	}
	for _, tt := range []struct {
		op, key string
		params  object
		want    []string
	}{
		{"list_tasks", "task_id", object{"limit": 1 << 40, "agent_id": alice}, []string{"t0", "t1", "t4", "t5", "t6", "t7", "t8", "t9", "t10", "t11"}},
		{"list_tasks", "task_id", object{"limit": 1 << 40}, []string{"t0", "t1", "t2", "t3", "t4", "t5", "t6", "t7", "t8", "t9"}},
		{"list_tasks", "task_id", object{"limit": 2}, []string{"t0", "t1"}},
		{"list_channels", "channel_id", object{"limit": 1 << 40}, channels[1:3]},
		{"list_channels", "channel_id", object{"limit": 1 << 40, "agent_id": bob}, channels[1:3]},
		{"list_channels", "channel_id", object{"limit": 1}, channels[1:2]},
	} {
		var list []object
		p.call(tt.op, tt.params, &list)
		var got []string
		for _, e := range list {
			got = append(got, fmt.Sprint(e[tt.key]))
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%s %v: %v, want %v", tt.op, tt.params, got, tt.want)
		}
	}
	for i := range 90 {
		p.call("register", object{"passport": object{"name": fmt.Sprint("n", i), "owner": strings.Repeat("o", 15_000)}, "resume": object{}}, nil)
	}
	var agents []object
	p.call("list_agents", object{"limit": 1 << 62}, &agents)
	if len(agents) < 60 || len(agents) > 71 || agents[0]["name"] != "alice" {
		t.Errorf("%d agents are listed", len(agents))
	}
}

// asked records how many identities the hub was last asked for.
type asked struct {
	*hub.Hub
	agents atomic.Int64
}

func (a *asked) Agents(ctx context.Context, q hub.AgentQuery) ([]hub.Profile, error) {
	a.agents.Store(int64(q.Limit))
	return a.Hub.Agents(ctx, q)
}

// A huge limit is reduced to what a frame could hold before anything is looked up.
func TestHugeLimitsAreCutFirst(t *testing.T) {
	t.Parallel()
	var seen *asked
	r := newRig(t, options{wrap: func(h *hub.Hub) ag2.Hub {
		seen = &asked{Hub: h}
		return seen
	}})
	p := r.dial()
	p.register("alice")
	p.call("list_agents", object{"limit": 1 << 62}, nil)
	if n := seen.agents.Load(); n < 1 || n > 8192 {
		t.Errorf("the hub was asked for %d", n)
	}
}

// Ended entries do not displace open ones: clients ask for a number of both,
// and leave out the ended themselves.
func TestListsKeepWhatIsOpen(t *testing.T) {
	t.Parallel()
	r := newRig(t, options{})
	p, q := r.dial(), r.dial()
	alice, bob := p.register("alice"), q.register("bob")
	var want []string
	for i := range 8 {
		ch := p.open("conversation", alice, map[string]*peer{bob: q})
		id := fmt.Sprint("t", i)
		p.call("observe_task", object{"metadata": object{"task_id": id, "owner_id": alice, "state": "running"}}, nil)
		if i == 1 || i > 5 {
			want = append(want, ch, id)
			continue
		}
		p.call("close_channel", object{"channel_id": ch}, nil)
		p.call("update_task", object{"task_id": id, "state": "completed"}, nil)
	}
	all := func(op string, params object, key string) (ids []string) {
		var list []object
		p.call(op, params, &list)
		for _, e := range list {
			ids = append(ids, fmt.Sprint(e[key]))
		}
		return ids
	}
	every := all("list_channels", object{"limit": 50}, "channel_id")
	for _, params := range []object{{"limit": 4}, {"limit": 4, "agent_id": alice}} {
		got := all("list_channels", params, "channel_id")
		if wanted := []string{every[0], want[0], want[2], want[4]}; !slices.Equal(got, wanted) {
			t.Errorf("%v lists channels %v, want %v of %v", params, got, wanted, every)
		}
	}
	if got := all("list_channels", object{"limit": 2, "agent_id": alice}, "channel_id"); !slices.Equal(got, []string{want[0], want[2]}) {
		t.Errorf("two channels: %v of %v", got, every)
	}
	if got := all("list_channels", object{"limit": 1, "agent_id": bob}, "channel_id"); !slices.Equal(got, []string{want[0]}) {
		t.Errorf("one channel: %v of %v", got, every)
	}
	for _, tt := range []struct {
		params object
		want   []string
	}{
		{object{"limit": 4, "agent_id": alice}, []string{"t0", "t1", "t6", "t7"}},
		{object{"limit": 2, "agent_id": alice}, []string{"t1", "t6"}},
		{object{"limit": 3, "agent_id": alice, "state": "completed"}, []string{"t0", "t2", "t3"}},
		{object{"limit": 3}, []string{"t0", "t1", "t2"}},
		{object{"limit": 0, "agent_id": alice}, nil},
	} {
		if got := all("list_tasks", tt.params, "task_id"); !slices.Equal(got, tt.want) {
			t.Errorf("%v lists tasks %v, want %v", tt.params, got, tt.want)
		}
	}
}

// Once an identity has attached on another connection, only receipts of that
// connection acknowledge what was replayed to it.
func TestReceiptsOfTheOldConnection(t *testing.T) {
	t.Parallel()
	r := newRig(t, options{})
	p, old := r.dial(), r.dial()
	alice, bob := p.register("alice"), old.register("bob")
	ch := p.open("conversation", alice, map[string]*peer{bob: old})
	p.say(ch, alice, "hi")
	first := old.notifiedOf("ag2.msg.text")
	again := func() (*peer, notice) {
		q := r.dial()
		q.hello("bob", "")
		return q, q.notifiedOf("ag2.msg.text")
	}
	young, _ := again()
	old.receipt(first, "ack")
	old.call("get_agent", object{"name_or_id": bob}, nil) // its receipt has been read
	next, n := again()
	if n.Envelope["envelope_id"] != first.Envelope["envelope_id"] {
		t.Errorf("replayed %v", n.Envelope)
	}
	next.receipt(n, "ack")
	next.call("get_agent", object{"name_or_id": bob}, nil)
	young.hangUp()
	last := r.dial()
	last.hello("bob", "")
	last.quiet()
}
