package hub_test

import (
	"testing"

	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/hub"
)

// Filters of lists are data.
func TestListsAreFiltered(t *testing.T) {
	t.Parallel()
	stored(t, "by type, state, labels and who is invited", withBoard, func(t *testing.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		shy := r.agent("shy").ignoreInvites()
		red := func(o *hub.Opening) { o.Labels = map[string]string{"team": "red"} }
		now, err := r.Now(ctx)
		if err != nil {
			t.Fatal(err)
		}
		board := r.openWith("board", red, a, b)
		talk := r.open("conversation", a, b)
		ended := r.openWith("board", red, a)
		if _, err := r.CloseChannel(ctx, ended, ""); err != nil {
			t.Fatal(err)
		}
		opening := make(chan struct{})
		go func() {
			defer close(opening)
			_, _ = r.tryOpen("conversation", nil, a, shy)
		}()
		var pending string
		for pending == "" { // it waits for shy
			for _, id := range r.listAll(hub.ListOptions{State: channel.Pending}) {
				pending = id
			}
		}
		for name, tc := range map[string]struct {
			o    hub.ListOptions
			want []string
		}{
			"all":                   {hub.ListOptions{}, []string{board, talk, ended, pending}},
			"a type":                {hub.ListOptions{Type: "board"}, []string{board, ended}},
			"a state":               {hub.ListOptions{State: channel.Closed}, []string{ended}},
			"a type and open":       {hub.ListOptions{Type: "board", Open: true}, []string{board}},
			"a label and a state":   {hub.ListOptions{Label: []hub.Label{{Key: "team", Value: "red"}}, State: channel.Active}, []string{board}},
			"who is invited":        {hub.ListOptions{Agent: shy.id, Open: true, Invited: shy.id}, []string{pending}},
			"who answered":          {hub.ListOptions{Agent: b.id, Open: true, Invited: b.id}, nil},
			"a type that is not":    {hub.ListOptions{Type: "bored"}, nil},
			"an agent and its type": {hub.ListOptions{Agent: b.id, Type: "conversation"}, []string{talk}},
		} {
			if got := r.listAll(tc.o); !equalIDs(got, tc.want) {
				t.Errorf("%s: %v, want %v", name, got, tc.want)
			}
		}
		if _, err := r.CloseChannel(ctx, pending, ""); err != nil {
			t.Fatal(err)
		}
		<-opening
		r.post(a, board, "board.note", `{}`)
		r.say(a, talk, "hello")
		last := r.post(a, board, "board.last", `{}`)
		for _, o := range []hub.WideOptions{
			{After: now, Type: "board"}, {After: now, Label: []hub.Label{{Key: "team", Value: "red"}}}, {After: now, Type: "board", As: b.id},
		} {
			f, err := r.FollowAll(ctx, o)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for len(got) == 0 || got[len(got)-1] != last {
				ev, err := f.Next(ctx)
				if err != nil {
					t.Fatal(err)
				}
				if ev.Channel.ID != board {
					t.Errorf("%+v showed channel %s", o, ev.Channel.ID)
				}
				got = append(got, ev.Envelope.ID)
			}
			f.Close()
			if len(got) != 2 {
				t.Errorf("%+v showed %d events", o, len(got))
			}
		}
	})
}
