package ag2_test

import (
	"fmt"
	"testing"

	"github.com/parley-hub/parley/dialect/ag2"
	"github.com/parley-hub/parley/fault"
)

// A participant reads every envelope of a log in its place, but whispers to others
// are empty, unless folds need their data.
func TestReadWALHidesWhispers(t *testing.T) {
	t.Parallel()
	for _, mode := range []ag2.WAL{"", ag2.WALFiltered, ag2.WALWhole} {
		t.Run("mode "+string(mode), func(t *testing.T) {
			t.Parallel()
			r := newRig(t, options{config: ag2.Config{ReadWAL: mode}})
			p, q, s := r.dial(), r.dial(), r.dial()
			alice, bob, carol := p.register("alice"), q.register("bob"), s.register("carol")
			ch := p.open("discussion", alice, map[string]*peer{bob: q, carol: s})
			to := object{"audience": []string{bob}}
			p.post(ch, alice, "com.example.note", object{"x": "psst"}, to)
			p.post(ch, alice, "ag2.msg.text", object{"text": "psst"}, to)
			p.post(ch, alice, "com.example.note", object{"x": "hello"})
			read := func(by *peer) (data []string) {
				var all, part []object
				by.call("read_wal", object{"channel_id": ch}, &all)
				by.call("read_wal", object{"channel_id": ch, "since": len(all) - 3}, &part)
				for i, e := range part {
					data = append(data, fmt.Sprint(e["event_data"]))
					if fmt.Sprint(e) != fmt.Sprint(all[len(all)-3+i]) || e["sender_id"] != alice {
						t.Errorf("%v is not in its place", e)
					}
				}
				return data
			}
			whole := fmt.Sprint([]string{"map[x:psst]", "map[text:psst]", "map[x:hello]"})
			hidden := fmt.Sprint([]string{"map[]", "map[]", "map[x:hello]"})
			if mode == ag2.WALWhole {
				hidden = whole
			}
			for who, want := range map[*peer]string{p: whole, q: whole, s: hidden} {
				if got := fmt.Sprint(read(who)); got != want {
					t.Errorf("got %s, want %s", got, want)
				}
			}
		})
	}
	for _, s := range []string{"", "filtered", "whole"} {
		if _, err := ag2.ParseWAL(s); err != nil {
			t.Errorf("%q: %v", s, err)
		}
	}
	if _, err := ag2.ParseWAL("some"); fault.CodeOf(err) != fault.Invalid {
		t.Errorf("some: %v", err)
	}
}

// Data that a client's own fold needs is complete, also for readers that may
// not see it: packets and context.
func TestReadWALKeepsWhatFoldsNeed(t *testing.T) {
	t.Parallel()
	r := newRig(t, options{})
	p, q, s := r.dial(), r.dial(), r.dial()
	alice, bob, carol := p.register("alice"), q.register("bob"), s.register("carol")
	graph := object{
		"initial_speaker": alice, "transitions": []object{},
		"default_target": object{"name": "agent", "args": object{"agent_id": alice}},
	}
	ch := p.open("workflow", alice, map[string]*peer{bob: q, carol: s}, object{"knobs": object{"graph": graph}})
	to := object{"audience": []string{bob}}
	p.post(ch, alice, "ag2.context.set", object{"set": object{"n": 1}}, to)
	p.post(ch, alice, "ag2.packet", object{"body": "psst", "context_updates": object{"set": object{"n": 2}}}, to)
	p.post(ch, alice, "com.example.note", object{"x": "psst"}, to)
	var logs [2][]object
	q.call("read_wal", object{"channel_id": ch}, &logs[0])
	s.call("read_wal", object{"channel_id": ch}, &logs[1])
	if len(logs[0]) != len(logs[1]) {
		t.Fatalf("bob reads %d, carol %d", len(logs[0]), len(logs[1]))
	}
	seen := map[string]int{}
	for i, whole := range logs[0] {
		kind := fmt.Sprint(whole["event_type"])
		want := fmt.Sprint(whole["event_data"])
		if kind == "com.example.note" {
			want = "map[]"
		}
		if got := fmt.Sprint(logs[1][i]["event_data"]); got != want {
			t.Errorf("carol reads %s with %s, want %s", kind, got, want)
		}
		seen[kind]++
	}
	for _, kind := range []string{"ag2.context.set", "ag2.packet", "com.example.note"} {
		if seen[kind] != 1 {
			t.Errorf("%s is there %d times", kind, seen[kind])
		}
	}
}
