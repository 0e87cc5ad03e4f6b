package disk_test

import (
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/parley-hub/parley/journal/disk"
)

// TestCloseWaitsForCompactions closes a store that has so many tables on its
// first level that Pebble flushes nothing more before some are compacted, which
// the scheduler did not allow while batches arrived.
func TestCloseWaitsForCompactions(t *testing.T) {
	t.Parallel()
	const most = 4
	fs := vfs.NewMem()
	opts := testOptions(fs).Tuned(func(p *pebble.Options) {
		p.L0CompactionThreshold, p.L0StopWritesThreshold = most, most
	})
	e, err := disk.Open("/data", opts)
	if err != nil {
		t.Fatal(err)
	}
	for i := range most {
		commit(t, e, diaryEntry(i, 1))
		if err := e.FlushStore(); err != nil {
			t.Fatal(err)
		}
	}
	commit(t, e, diaryEntry(most, 1))
	mustClose(t, e)
	mustClose(t, mustOpen(t, fs))
}
