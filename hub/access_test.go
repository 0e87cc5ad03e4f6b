package hub_test

import (
	"slices"
	"testing"

	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub"
	"github.com/parley-hub/parley/task"
)

// TestAccess checks each cell of the table of hub.Access: a channel of alice and
// bob with a task of alice in it, another task of alice without a channel, and a
// channel of bob and carol.
func TestAccess(t *testing.T) {
	t.Parallel()
	type rights struct {
		channel, closes, task, other bool
		acts                         string
	}
	all := rights{channel: true, closes: true, task: true, other: true}
	with := func(r rights, acts string) rights { r.acts = acts; return r }
	for name, tt := range map[string]struct {
		by   func(a, b, c string) *hub.Caller
		want rights
	}{
		"the program itself": {func(_, _, _ string) *hub.Caller { return nil }, with(all, "abc")},
		"nobody":             {func(_, _, _ string) *hub.Caller { return &hub.Caller{} }, rights{}},
		"alice":              {func(a, _, _ string) *hub.Caller { return &hub.Caller{Agents: []string{a}} }, rights{true, true, true, false, "a"}},
		"carol":              {func(_, _, c string) *hub.Caller { return &hub.Caller{Agents: []string{c}} }, rights{other: true, acts: "c"}},
		"bob and carol": {func(_, b, c string) *hub.Caller {
			return &hub.Caller{Agents: slices.Sorted(slices.Values([]string{c, b}))}
		}, rights{true, true, false, true, "bc"}},
		"a reader":             {func(_, _, _ string) *hub.Caller { return &hub.Caller{Role: hub.RoleReader} }, rights{true, false, true, true, ""}},
		"an operator":          {func(_, _, _ string) *hub.Caller { return &hub.Caller{Role: hub.RoleOperator} }, all},
		"whoever acts for all": {func(_, _, _ string) *hub.Caller { return &hub.Caller{Anyone: true} }, with(all, "abc")},
	} {
		runs(t, name, hub.Options{}, func(t *testing.T, r *rig) {
			a, b, c := r.agent("alice"), r.agent("bob"), r.agent("carol")
			ch, other := r.open("conversation", a, b), r.open("conversation", b, c)
			for _, tk := range []task.Task{{ID: "in", Owner: a.id, Channel: ch}, {ID: "out", Owner: a.id}} {
				if err := r.ObserveTask(ctx, tk, nil, hub.MirrorOff); err != nil {
					t.Fatal(err)
				}
			}
			as := r.As(tt.by(a.id, b.id, c.id))
			allowed := func(what string, err error, want bool) {
				t.Helper()
				if (err == nil) != want || !want && fault.CodeOf(err) != fault.AccessDenied {
					t.Errorf("%s: %v; allowed is %v", what, err, want)
				}
			}
			_, err := as.Channel(ctx, ch)
			allowed("the channel", err, tt.want.channel)
			_, err = as.Channel(ctx, other)
			allowed("the other channel", err, tt.want.other)
			channels, _, err := as.Channels(ctx, hub.ListOptions{})
			allowed("listing channels", err, true)
			for id, want := range map[string]bool{ch: tt.want.channel, other: tt.want.other} {
				if slices.ContainsFunc(channels, func(m *channel.Metadata) bool { return m.ID == id }) != want {
					t.Errorf("listed channel: %v, want %v", !want, want)
				}
			}
			_, err = as.Task(ctx, "in")
			allowed("a task of the channel", err, tt.want.channel)
			_, err = as.Task(ctx, "out")
			allowed("a task without a channel", err, tt.want.task)
			tasks, _, err := as.Tasks(ctx, hub.TaskQuery{})
			allowed("listing tasks", err, true)
			for id, want := range map[string]bool{"in": tt.want.channel, "out": tt.want.task} {
				if slices.ContainsFunc(tasks, func(t *task.Task) bool { return t.ID == id }) != want {
					t.Errorf("listed task %s: %v, want %v", id, !want, want)
				}
			}
			for letter, id := range map[rune]string{'a': a.id, 'b': b.id, 'c': c.id} {
				allowed("acting for "+string(letter), as.MayActFor(id), slices.Contains([]rune(tt.want.acts), letter))
			}
			_, err = as.CloseChannel(ctx, ch, "done")
			allowed("closing", err, tt.want.closes)
		})
	}
}

// diary is a board that is shown to its members and to operators only.
type diary struct{ board }

func (diary) Manifest() channel.Manifest {
	return channel.Manifest{Type: "diary", Version: 1, KnobsSchema: []byte(`{}`), DefaultView: "full_transcript"}
}
func (diary) Private() bool { return true }

func TestPrivateChannels(t *testing.T) {
	t.Parallel()
	runs(t, "a reader sees none", hub.Options{Adapters: []channel.Adapter{diary{}, board{}}}, func(t *testing.T, r *rig) {
		a := r.agent("alice")
		private, public := r.open("diary", a), r.open("board", a)
		r.post(a, private, "board.note", `{"n":1}`)
		r.post(a, public, "board.note", `{"n":2}`)
		for name, tt := range map[string]struct {
			by   *hub.Caller
			sees []string
		}{
			"a reader":    {&hub.Caller{Role: hub.RoleReader}, []string{public}},
			"an operator": {&hub.Caller{Role: hub.RoleOperator}, []string{private, public}},
			"alice":       {&hub.Caller{Agents: []string{a.id}}, []string{private, public}},
		} {
			list, _, err := r.As(tt.by).Channels(ctx, hub.ListOptions{})
			var ids []string
			for _, m := range list {
				ids = append(ids, m.ID)
			}
			if err != nil || !slices.Equal(ids, tt.sees) {
				t.Errorf("%s lists %v (%v), not %v", name, ids, err, tt.sees)
			}
			_, err = r.As(tt.by).Channel(ctx, private)
			if refused := fault.CodeOf(err) == fault.AccessDenied; refused == slices.Contains(tt.sees, private) {
				t.Errorf("%s asks for the private one: %v", name, err)
			}
		}
		for _, as := range []string{"", a.id} {
			f, err := r.FollowAll(ctx, hub.WideOptions{As: as, NoPrivate: true})
			if err != nil {
				t.Fatal(err)
			}
			ev, err := f.Next(ctx)
			if err != nil || ev.Channel.ID != public {
				t.Errorf("as %q the feed begins with %+v (%v)", as, ev, err)
			}
			f.Close()
		}
	})
}
