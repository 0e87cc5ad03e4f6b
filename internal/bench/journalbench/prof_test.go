package journalbench

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/parley-hub/parley/internal/bench"
)

func TestKillOpen(t *testing.T) {
	if os.Getenv("PROF") == "" {
		t.Skip()
	}
	dir := t.TempDir()
	r := &run{ctx: context.Background(), dir: dir, data: payloads(), opts: Options{Plan: bench.Plan{Seconds: 10}}}
	if err := r.prepare(r.path("s"), 10000); err != nil {
		t.Fatal(err)
	}
	if err := r.kill(r.path("s"), r.path("k")); err != nil {
		t.Fatal(err)
	}
	os.RemoveAll("/tmp/killed"); copyTree(r.path("k"), "/tmp/killed"); l, _ := listing(r.path("k"))
	fmt.Println(l)
	for range 3 {
		a, err := r.openingKilled(r.path("k"))(r.ctx, 2*time.Second)
		b, err2 := readingLogs(r.path("k"))(r.ctx, time.Second)
		fmt.Println(a.Value, b.Value, a.Value/b.Value, err, err2)
	}
}
