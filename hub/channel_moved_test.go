package hub_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/parley-hub/parley/hub"
	"github.com/parley-hub/parley/journal"
	"github.com/parley-hub/parley/request"
)

// betweenScans is a store that calls a function once, after its first scan.
type betweenScans struct {
	journal.Engine
	call func()
}

func (e *betweenScans) Scan(ctx context.Context, shard int, o journal.ScanOptions) (journal.ScanPage, error) {
	page, err := e.Engine.Scan(ctx, shard, o)
	if call := e.call; call != nil {
		e.call = nil
		call()
	}
	return page, err
}

func TestChannelsThatEndWhileTheyAreListed(t *testing.T) {
	t.Parallel()
	for _, newest := range []bool{false, true} {
		r := newRigOn(t, withBoard, 1, "")
		a, b := r.agent("alice"), r.agent("bob")
		var want []string
		for range 3 {
			want = append(want, r.open("board", a, b))
		}
		if newest {
			slices.Reverse(want)
		}
		scans := &betweenScans{Engine: r.engine}
		r.Hub.Close()
		var err error
		if r.Hub, err = hub.Open(ctx, scans, r.opts); err != nil {
			t.Fatal(err)
		}
		for _, o := range []hub.ListOptions{{}, {Agent: a.id}} {
			scans.call = func() {
				if _, err := r.CloseChannel(ctx, want[1], "done"); err != nil {
					t.Error(err)
				}
			}
			o.Newest = newest
			list, _, err := r.Channels(ctx, o)
			var got []string
			for _, m := range list {
				got = append(got, m.ID)
			}
			if err != nil || !slices.Equal(got, want) {
				t.Errorf("%+v: %v, %v, want %v", o, got, err, want)
			}
		}
	}
}

func TestAChannelIsListedByTimeOnce(t *testing.T) {
	t.Parallel()
	runs(t, "its creation tells where, then its side log", withBoard, func(t *testing.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		expects := expecting(`[{"name":"max_silence","params":{"seconds":600},"on_violation":"audit"}]`)
		ch := r.openWith("board", expects, a, b)
		head := func() uint64 {
			t.Helper()
			h, err := r.stored.Head(ctx, journal.PartitionName{Tenant: "main", Partition: "channel/" + ch}.In("side", "-"))
			if err != nil {
				t.Fatal(err)
			}
			return h.Durable.Seq
		}
		once := func(when string) {
			t.Helper()
			for _, list := range []string{"active/", "due/expectation/"} {
				if got := r.listedUnder(list); !slices.Equal(got, []string{ch}) {
					t.Errorf("%s: %s holds %v", when, list, got)
				}
			}
		}
		once("opened")
		if n := head(); n != 0 {
			t.Errorf("%d side records of a channel that is just opened", n)
		}
		r.restart()
		once("opened again")
		asked, err := r.Ask(ctx, hub.Asking{Request: hub.Request{Channel: ch, AskedBy: a.id, Kind: "approval", Title: "?", Choices: []request.Choice{{ID: "approve"}, {ID: "deny"}}}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		once("with a side log")
		r.restart()
		once("with a side log, opened again")
		if err := r.stored.RebuildIndex(ctx); err != nil {
			t.Fatal(err)
		}
		once("with its index built again")
		if _, err := r.Answer(ctx, asked.ID, hub.Answer{Choice: "approve"}, nil); err != nil {
			t.Fatal(err)
		}
		r.pass(2 * time.Minute)
		r.post(a, ch, "board.note", `{}`)
		once("after another minute")
		r.end(ch, "done")
		for _, list := range []string{"active/", "due/"} {
			if got := r.listedUnder(list); len(got) > 0 {
				t.Errorf("ended: %s holds %v", list, got)
			}
		}
	})
}
