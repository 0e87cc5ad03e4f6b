package disk_test

import (
	"math/rand/v2"
	"path/filepath"
	"testing"
	"time"

	"github.com/parley-hub/parley/internal/scale"
)

// TestKill kills a process with many writers at random moments, many times on one
// folder: each time everything acknowledged is there, and possibly batches that were
// not acknowledged, but nothing else.
func TestKill(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 3))
	t.Logf("seed %d", seed)
	for round := range scale.N(12) {
		cmd := child(t, "writer", "DISK_TEST_DIR="+dir)
		stdout, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		w, ended := watch(stdout)
		acks := 1 + rng.IntN(400)
		timeout := time.After(time.Minute)
	counting:
		for range acks {
			select {
			case <-w.lines:
			case <-ended:
				t.Fatalf("round %d: the child ended by itself: %s", round, w.last)
			case <-timeout:
				break counting
			}
		}
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		<-ended
		_ = cmd.Wait()
		verifyChild(t, dir, w, "after a kill")
	}
}
