package openfiles_test

import (
	"testing"

	"github.com/parley-hub/parley/internal/openfiles"
)

func TestConnections(t *testing.T) {
	t.Parallel()
	for limit, want := range map[uint64]int{0: 1, 1: 1, 256: 128, 1024: 512, 2560: 1280, 2561: 1281, 4096: 2816, 1 << 20: 1<<20 - openfiles.Store, 1 << 63: 1<<31 - 1} {
		if got := openfiles.Connections(limit); got != want {
			t.Errorf("%d files leave %d connections, want %d", limit, got, want)
		}
	}
}
