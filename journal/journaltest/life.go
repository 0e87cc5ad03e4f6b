package journaltest

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"testing"

	"github.com/parley-hub/parley/journal"
)

var lifeCases = []testCase{
	{"a clean close keeps everything", closeKeeps},
	{"closing makes what is ordered durable", closeDrains},
	{"closing while everyone is busy ends every call", closeBusy},
	{"a closed engine refuses everything", closedRefuses},
	{"a checkpoint under load restores to a consistent prefix", checkpointLoad},
	{"while a sync is held others are ordered, and one sync serves all", groupCommit},
	{"an engine tells that it leads, and confirms it", leads},
}

func closeKeeps(t *testing.T, open Open) {
	r := start(t, open, Options{})
	fill(r, alpha, 50)
	r.commit(setting("v", "x"))
	place, index, texts := r.place(), r.index(), r.texts(alpha)
	for range 3 {
		r.reopen()
		now := r.place()
		equal(t, now.Epoch, place.Epoch)
		equal(t, now.Durable, place.Durable)
		equal(t, now.Ordered, place.Ordered)
		equal(t, r.index(), index)
		equal(t, r.texts(alpha), texts)
		equal(t, r.claim("alpha/7").Durable.Seq, uint64(8))
		equal(t, string(r.value(key("v")).Durable.Data), "x")
	}
	equal(t, r.commit(batch(expecting(50, to(alpha, "next")))).Offset(), place.Durable+1)
}

func closeDrains(t *testing.T, open Open) {
	r := start(t, open, Options{})
	reached, release := r.HoldSync()
	first := r.order(batch(to(alpha, "1")))
	r.await(reached, "a sync")
	second := r.order(batch(to(alpha, "2")))
	done := make(chan error, 1)
	go func() { done <- r.Engine.Close() }()
	release()
	need(t, <-done)
	equal(t, first.Outcome(), journal.Durable)
	equal(t, second.Outcome(), journal.Durable)
	need(t, r.Engine.Close())
	r.Engine, r.Faults = r.Faults.Reopen(t)
	equal(t, r.texts(alpha), []string{"1", "2"})
}

func closeBusy(t *testing.T, open Open) {
	r := start(t, open, Options{MaxUnsynced: 4 << 10})
	var wg sync.WaitGroup
	var mu sync.Mutex
	durable := map[string]bool{}
	begun := make(chan struct{}, 64)
	call := func(fn func(ctx context.Context, i int) error) {
		wg.Go(func() {
			for i := 0; ; i++ {
				if i == 3 {
					begun <- struct{}{}
				}
				err := fn(r.ctx, i)
				if errors.Is(err, journal.ErrClosed) {
					return
				}
				if err != nil {
					t.Error(err)
					begun <- struct{}{}
					return
				}
			}
		})
	}
	for w := range 8 {
		call(func(ctx context.Context, i int) error {
			text := fmt.Sprintf("%d.%d", w, i)
			ticket, err := r.Append(ctx, batch(to(home.In("log", fmt.Sprint(w)), text)))
			if err != nil {
				return err
			}
			if err := ticket.Wait(ctx); err != nil {
				return err
			}
			mu.Lock()
			durable[text] = true
			mu.Unlock()
			return nil
		})
	}
	logs, err := r.Follow(r.ctx, home.In("log", "0"), journal.Position{})
	need(t, err)
	call(func(ctx context.Context, _ int) error { _, err := logs.Next(ctx); return err })
	shard, err := r.FollowShard(r.ctx, r.shard(), journal.ShardPosition{})
	need(t, err)
	call(func(ctx context.Context, _ int) error { _, err := shard.Next(ctx); return err })
	call(func(ctx context.Context, _ int) error {
		_, err := r.Read(ctx, home.In("log", "1"), journal.ReadOptions{Backward: true})
		return err
	})
	call(func(ctx context.Context, i int) error {
		return r.PutLazy(ctx, journal.ValueWrite{Key: key("lazy"), Data: fmt.Append(nil, i)})
	})
	call(func(ctx context.Context, _ int) error {
		_, err := r.Drop(ctx, home.In("log", "7"))
		return err
	})
	for range 13 {
		r.await(begun, "the beginning of a call")
	}
	var closers sync.WaitGroup
	for range 3 {
		closers.Go(func() {
			if err := r.Engine.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	closers.Wait()
	wg.Wait()
	r.Engine, r.Faults = r.Faults.Reopen(t)
	for w := range 7 {
		for _, text := range r.texts(home.In("log", fmt.Sprint(w))) {
			delete(durable, text)
		}
	}
	for text := range durable {
		if text[0] != '7' {
			t.Fatalf("%s was durable and is gone", text)
		}
	}
}

func closedRefuses(t *testing.T, open Open) {
	r := start(t, open, Options{})
	r.commit(batch(to(alpha, "x")))
	need(t, r.Engine.Close())
	equal(t, r.Health().State, journal.Closed)
	calls := map[string]func() error{
		"Append":  func() error { _, err := r.Append(r.ctx, batch(to(alpha, "x"))); return err },
		"PutLazy": func() error { return r.PutLazy(r.ctx, journal.ValueWrite{Key: key("x")}) },
		"Place":   func() error { _, err := r.Place(r.ctx, r.shard()); return err },
		"Head":    func() error { _, err := r.Head(r.ctx, alpha); return err },
		"Read":    func() error { _, err := r.Read(r.ctx, alpha, journal.ReadOptions{}); return err },
		"Logs":    func() error { _, err := r.Logs(r.ctx, home, journal.LogsOptions{}); return err },
		"Value":   func() error { _, err := r.Value(r.ctx, key("x")); return err },
		"Lazy":    func() error { _, err := r.LazyValue(r.ctx, key("x")); return err },
		"Values":  func() error { _, err := r.Values(r.ctx, home, journal.ValuesOptions{}); return err },
		"Scan":    func() error { _, err := r.Scan(r.ctx, r.shard(), journal.ScanOptions{}); return err },
		"Claim":   func() error { _, err := r.Claim(r.ctx, r.shard(), "x"); return err },
		"Drop":    func() error { _, err := r.Drop(r.ctx, alpha); return err },
		"DropAll": func() error { _, err := r.DropPartition(r.ctx, home); return err },
		"Rebuild": func() error { return r.RebuildIndex(r.ctx) },
		"Copy":    func() error { _, err := r.Checkpoint(r.ctx, filepath.Join(t.TempDir(), "x")); return err },
		"Follow": func() error {
			f, err := r.Follow(r.ctx, alpha, journal.Position{})
			if err == nil {
				_, err = f.Next(r.ctx)
			}
			return err
		},
		"FollowShard": func() error {
			f, err := r.FollowShard(r.ctx, r.shard(), journal.ShardPosition{})
			if err == nil {
				_, err = f.Next(r.ctx)
			}
			return err
		},
	}
	for name, call := range calls {
		if err := call(); !errors.Is(err, journal.ErrClosed) {
			t.Errorf("%s after Close returned %v, want ErrClosed", name, err)
		}
	}
}

// checkpointLoad makes a checkpoint under load. Every writer appends numbers in
// order, so a consistent prefix has no gaps and an index that agrees with its records.
func checkpointLoad(t *testing.T, open Open) {
	r := start(t, open, Options{})
	begin := r.place().Durable
	var wg sync.WaitGroup
	stop := make(chan struct{})
	begun := make(chan struct{}, 4)
	for w := range 4 {
		log := home.In("log", fmt.Sprint(w))
		wg.Go(func() {
			for i := 1; ; i++ {
				if i == 10 {
					begun <- struct{}{}
				}
				select {
				case <-stop:
					return
				default:
				}
				ticket, err := r.Append(r.ctx, batch(
					records(log, journal.Record{
						Data: fmt.Append(nil, i), Put: []journal.IndexPut{put(fmt.Sprintf("%d/%06d", w, i), "")},
					}),
					to(home.In("twin", fmt.Sprint(w)), fmt.Sprint(i)),
				))
				if err == nil {
					err = ticket.Wait(r.ctx)
				}
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	for range 4 {
		r.await(begun, "load")
	}
	dir := filepath.Join(t.TempDir(), "copy")
	before := r.place()
	at, err := r.Checkpoint(r.ctx, dir)
	close(stop)
	wg.Wait()
	need(t, err)
	if at := at[r.shard()]; at.Epoch != before.Epoch || at.Offset < before.Durable {
		t.Fatalf("the checkpoint is at %v, before it the shard was at %+v", at, before)
	}
	if _, err := r.Checkpoint(r.ctx, dir); err == nil {
		t.Fatal("a checkpoint was written over another")
	}
	r.restore(dir)
	if now := r.place(); now.Epoch <= before.Epoch || now.Durable < at[r.shard()].Offset {
		t.Fatalf("restored to %+v, the checkpoint was at %v", now, at)
	}
	total := 0
	for w := range 4 {
		texts := r.texts(home.In("log", fmt.Sprint(w)))
		equal(t, texts, numbered("", 1, len(texts)))
		equal(t, r.texts(home.In("twin", fmt.Sprint(w))), texts)
		equal(t, len(r.scan(journal.ScanOptions{Prefix: fmt.Appendf(nil, "%d/", w)})), len(texts))
		total += len(texts)
	}
	equal(t, uint64(total), r.place().Durable-begin)
}

func leads(t *testing.T, open Open) {
	r := start(t, open, Options{})
	for shard := range r.Shards() {
		mine, _, _ := r.Lead(shard)
		equal(t, mine, true)
		need(t, r.Confirm(r.ctx, shard))
	}
	invalid(t, r.Confirm(r.ctx, r.Shards()))
	b := batch(to(alpha, "x"))
	b.Hint = make([]byte, journal.MaxHint+1)
	_, err := r.Append(r.ctx, b)
	invalid(t, err)
	b.Hint = []byte("hint")
	at := r.place()
	follower, err := r.FollowShard(r.ctx, r.shard(), journal.ShardPosition{Epoch: at.Epoch, Offset: at.Durable})
	need(t, err)
	defer follower.Close()
	r.commit(b)
	commits, err := follower.Next(r.ctx)
	need(t, err)
	equal(t, len(commits), 1)
	if hint := string(commits[0].Hint); hint != "hint" && hint != "" {
		t.Fatalf("the hint is %q", hint)
	}
	need(t, r.Engine.Close())
	if err := r.Confirm(r.ctx, 0); !errors.Is(err, journal.ErrClosed) {
		t.Fatalf("a closed engine confirms with %v", err)
	}
}

func groupCommit(t *testing.T, open Open) {
	r := start(t, open, Options{})
	r.commit(batch(to(alpha, "0")))
	reached, release := r.HoldSync()
	defer release()
	first := r.order(batch(to(alpha, "first")))
	r.await(reached, "a sync")
	before := r.Stats()
	var behind []*journal.Ticket
	for i := range 50 {
		behind = append(behind, r.order(batch(to(home.In("log", fmt.Sprint(i)), "x"))))
	}
	pending(t, append(behind, first)...)
	release()
	for _, ticket := range behind {
		need(t, ticket.Wait(r.ctx))
	}
	after := r.Stats()
	equal(t, after.Batches-before.Batches, uint64(51))
	equal(t, after.Groups-before.Groups, uint64(2))
	equal(t, after.Syncs-before.Syncs, uint64(2))
	equal(t, after.Unsynced, int64(0))
}
