package journaltest

import (
	"bytes"
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"github.com/parley-hub/parley/journal"
)

// shardCases pass with any number of shards; with one shard they check little.
var shardCases = []testCase{
	{"partitions keep their shards, and the directory is in shard 0", shardsFixed},
	{"offsets, claims and followers are of one shard", shardsApart},
	{"a scan of all shards is in the order of keys", shardsScanned},
	{"a scan of all shards goes on where its page ended", shardsPaged},
	{"a checkpoint has a position for each shard", shardsCopied},
	{"a shard that does not exist is refused", shardsBounded},
}

// spread returns partitions in different shards, if the engine has several.
func (r *rig) spread() []journal.PartitionName {
	var out []journal.PartitionName
	seen := map[int]bool{}
	for i := 0; len(seen) < min(r.Shards(), 4); i++ {
		p := journal.PartitionName{Tenant: "acme", Partition: fmt.Sprint("home/", i)}
		if !seen[r.Shard(p)] {
			seen[r.Shard(p)] = true
			out = append(out, p)
		}
	}
	return out
}

func shardsFixed(t *testing.T, open Open) {
	r := start(t, open, Options{})
	n := r.Shards()
	if n < 1 {
		t.Fatalf("%d shards", n)
	}
	equal(t, r.Shard(journal.PartitionName{Tenant: "acme", Partition: journal.Directory}), 0)
	before := map[journal.PartitionName]int{}
	for i := range 50 {
		p := journal.PartitionName{Tenant: "acme", Partition: fmt.Sprint("channel/", i)}
		before[p] = r.Shard(p)
		equal(t, before[p], journal.ShardOf(p, n))
	}
	r.reopen()
	equal(t, r.Shards(), n)
	for p, shard := range before {
		equal(t, r.Shard(p), shard)
	}
}

func shardsApart(t *testing.T, open Open) {
	r := start(t, open, Options{})
	for i, p := range r.spread() {
		shard := r.Shard(p)
		before, err := r.Place(r.ctx, shard)
		need(t, err)
		follower, err := r.FollowShard(r.ctx, shard, journal.ShardPosition{})
		need(t, err)
		first := r.commit(taking(p.In("log", "x"), "name"))
		second := r.commit(batch(to(p.In("log", "x"), fmt.Sprint(i))))
		equal(t, first.Shard(), shard)
		equal(t, first.Offset(), before.Durable+1)
		equal(t, second.Offset(), before.Durable+2)
		state, err := r.Claim(r.ctx, shard, "name")
		need(t, err)
		equal(t, state.Durable.Log, p.In("log", "x"))
		var logs []journal.LogName
		for len(logs) < 2 {
			commits, err := follower.Next(r.ctx)
			need(t, err)
			for _, c := range commits {
				logs = append(logs, c.Writes[0].Log)
			}
		}
		equal(t, logs, []journal.LogName{p.In("log", "x"), p.In("log", "x")})
		follower.Close()
	}
}

// fillShards puts entries whose keys alternate between partitions.
func (r *rig) fillShards(n int) (keys []string) {
	r.t.Helper()
	spread := r.spread()
	for i := range n {
		k := fmt.Sprintf("k/%03d", i)
		r.order(batch(records(spread[i*7%len(spread)].In("log", "x"), journal.Record{Put: []journal.IndexPut{put(k, "v")}})))
		keys = append(keys, k)
	}
	for _, p := range spread { // one key that every shard has
		r.commit(batch(records(p.In("log", "y"), journal.Record{Put: []journal.IndexPut{put("k/shared", "v")}})))
		keys = append(keys, "k/shared")
	}
	return keys
}

func (r *rig) scanAll(opts journal.ScanOptions) (keys []string) {
	r.t.Helper()
	for entry, err := range journal.IndexAll(r.ctx, r.Engine, opts) {
		need(r.t, err)
		keys = append(keys, string(entry.Key))
	}
	return keys
}

func shardsScanned(t *testing.T, open Open) {
	r := start(t, open, Options{})
	keys := r.fillShards(60)
	equal(t, r.scanAll(journal.ScanOptions{}), keys)
	equal(t, r.scanAll(journal.ScanOptions{Prefix: []byte("k/0"), From: []byte("k/010"), To: []byte("k/020")}), keys[10:20])
	slices.Reverse(keys)
	equal(t, r.scanAll(journal.ScanOptions{Backward: true}), keys)
	equal(t, r.scanAll(journal.ScanOptions{Prefix: []byte("none")}), nil)
}

func shardsPaged(t *testing.T, open Open) {
	r := start(t, open, Options{})
	keys := r.fillShards(40)
	backward := slices.Clone(keys)
	slices.Reverse(backward)
	for _, n := range []int{1, 2, 3, 7} {
		limits := journal.Limits{Entries: n}
		equal(t, r.scanAll(journal.ScanOptions{Limits: limits}), keys)
		equal(t, r.scanAll(journal.ScanOptions{Limits: limits, Backward: true}), backward)
	}
	// Entries put after the page are found, entries put before it are not.
	page, err := journal.ScanAll(r.ctx, r.Engine, journal.ScanOptions{Limits: journal.Limits{Entries: 10}})
	need(t, err)
	for _, p := range r.spread() {
		r.commit(batch(records(p.In("log", "z"), journal.Record{
			Put: []journal.IndexPut{put("k/000x", ""), put("k/zzz", "")},
		})))
	}
	rest := r.scanAll(journal.ScanOptions{After: page.Next})
	equal(t, rest[:30+len(r.spread())], keys[10:])
	for _, k := range rest[30+len(r.spread()):] {
		equal(t, k, "k/zzz")
	}
	if r.Shards() > 1 {
		_, err = journal.ScanAll(r.ctx, r.Engine, journal.ScanOptions{After: bytes.Repeat([]byte{9}, 5)})
		invalid(t, err)
	}
}

func shardsCopied(t *testing.T, open Open) {
	r := start(t, open, Options{})
	keys := r.fillShards(30)
	dir := filepath.Join(t.TempDir(), "copy")
	at, err := r.Checkpoint(r.ctx, dir)
	need(t, err)
	equal(t, len(at), r.Shards())
	for shard := range at {
		place, err := r.Place(r.ctx, shard)
		need(t, err)
		equal(t, at[shard], journal.ShardPosition{Epoch: place.Epoch, Offset: place.Durable})
	}
	r.restore(dir)
	equal(t, r.Shards(), len(at))
	equal(t, r.scanAll(journal.ScanOptions{}), keys)
}

func shardsBounded(t *testing.T, open Open) {
	r := start(t, open, Options{})
	for _, shard := range []int{-1, r.Shards()} {
		_, err := r.Place(r.ctx, shard)
		invalid(t, err)
		_, err = r.Scan(r.ctx, shard, journal.ScanOptions{})
		invalid(t, err)
		_, err = r.Claim(r.ctx, shard, "x")
		invalid(t, err)
		_, err = r.FollowShard(r.ctx, shard, journal.ShardPosition{})
		invalid(t, err)
	}
}
