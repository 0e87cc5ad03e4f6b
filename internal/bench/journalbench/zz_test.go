package journalbench

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/parley-hub/parley/journal/disk"
)

func TestZP(t *testing.T) {
	var n int
	var mt uint64
	fmt.Sscan(os.Getenv("MT"), &mt)
	if k, _ := fmt.Sscan(os.Getenv("PROF"), &n); k != 1 {
		t.Skip()
	}
	e, err := disk.Open(filepath.Join(t.TempDir(), "data"), disk.Options{MemTableSize: mt << 20})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	for range 3 {
		var a, b syscall.Rusage
		syscall.Getrusage(0, &a)
		before := e.Stats()
		defer func() {}()
		s, err := load(context.Background(), 4*time.Second, n, appender(e, "log", payloads(), n))
		syscall.Getrusage(0, &b)
		after := e.Stats()
		cpu := float64(b.Utime.Nano()+b.Stime.Nano()-a.Utime.Nano()-a.Stime.Nano()) / 1000
		fmt.Printf("%.0f/s  cpu/append %.2f µs  per group %.1f\n", s.Value, cpu/float64(after.Batches-before.Batches), float64(after.Batches-before.Batches)/float64(after.Groups-before.Groups))
		_ = err
	}
	fl, _ := newFloor(filepath.Join(t.TempDir(), "floor"))
	data := payloads()
	var a, b syscall.Rusage
	syscall.Getrusage(0, &a)
	s, err := load(context.Background(), 2*time.Second, n, func(_ context.Context, _, i int) error { return fl.append(data[i%64]) })
	syscall.Getrusage(0, &b)
	cpu := float64(b.Utime.Nano()+b.Stime.Nano()-a.Utime.Nano()-a.Stime.Nano()) / 1000
	fmt.Printf("floor %.0f/s cpu/append %.2f\n", s.Value, cpu/(s.Value*2))
	_ = err
}
