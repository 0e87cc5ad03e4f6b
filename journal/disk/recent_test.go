package disk_test

import (
	"bytes"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/parley-hub/parley/journal"
	"github.com/parley-hub/parley/journal/disk"
)

// TestRecentCommitsAreBounded follows a shard: as many of the newest commits as there
// is room for are kept in memory, and the others are read from the store.
func TestRecentCommitsAreBounded(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ room, kept int64 }{
		"four":  {4 * 1500, 4},
		"none":  {1, 0},
		"whole": {0, 8},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e, err := disk.Open("/data", disk.Options{FS: vfs.NewMem(), MinFree: -1, RecentBytes: tt.room})
			if err != nil {
				t.Fatal(err)
			}
			defer mustClose(t, e)
			f, err := e.FollowShard(t.Context(), 0, journal.ShardPosition{})
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			const commits = 8
			for i := range commits {
				commit(t, e, journal.Batch{Appends: []journal.Append{{
					Log: diary, Records: []journal.Record{{Data: bytes.Repeat([]byte{byte(i)}, 1200)}},
				}}})
			}
			var kept int64
			for i := range uint64(commits) {
				first, second := dataAfter(t, e, i), dataAfter(t, e, i)
				if len(first) != 1200 || first[0] != byte(i) || !bytes.Equal(first, second) {
					t.Errorf("commit %d has %d bytes", i+1, len(first))
				}
				if &first[0] == &second[0] { // each read of the store allocates its own
					kept++
				} else if kept > 0 {
					t.Errorf("commit %d is not kept, and an older one is", i+1)
				}
			}
			if kept != tt.kept {
				t.Errorf("%d commits are kept, want %d", kept, tt.kept)
			}
		})
	}
}

// dataAfter reads the record of the commit after an offset.
func dataAfter(t *testing.T, e *disk.Engine, offset uint64) []byte {
	t.Helper()
	commits, err := e.Commits(t.Context(), 0, offset)
	if err != nil || len(commits) == 0 || len(commits[0].Writes) != 1 || len(commits[0].Writes[0].Entries) != 1 {
		t.Fatalf("after %d: %+v, %v", offset, commits, err)
	}
	return commits[0].Writes[0].Entries[0].Data
}
