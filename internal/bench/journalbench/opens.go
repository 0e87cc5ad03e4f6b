package journalbench

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/parley-hub/parley/internal/bench"
	"github.com/parley-hub/parley/journal/disk"
)

// opens measures opening after a clean close, and after a kill.
func (r *run) opens() ([]bench.Figure, error) {
	small, large := r.opts.scaled(10_000), r.opts.scaled(1_000_000)
	for name, n := range map[string]int{"small": small, "large": large} {
		if err := r.prepare(r.path(name), n); err != nil {
			return nil, err
		}
	}
	f, err := bench.Contest{
		Name: fmt.Sprintf("open after a clean close, %d records against %d", large, small), Unit: "ms",
		Better: bench.Lower, Target: new(2.0), Ours: r.opening(r.path("large")), Floor: r.opening(r.path("small")),
	}.Run(r.ctx, r.opts.Plan)
	figures := []bench.Figure{f}
	if err != nil {
		return figures, err
	}
	for _, c := range []struct {
		name string
		n    int
	}{{"small", small}, {"large", large}} {
		killed := r.path(c.name + "-killed")
		if err := r.kill(r.path(c.name), killed); err != nil {
			return figures, err
		}
		f, err := bench.Contest{
			Name: fmt.Sprintf("open after a kill, %d records, against reading its log", c.n), Unit: "ms",
			Better: bench.Lower, Target: new(16.0), Ours: r.openingKilled(killed), Floor: readingLogs(killed),
		}.Run(r.ctx, r.opts.Plan)
		if err != nil {
			return figures, err
		}
		figures = append(figures, f)
		if err := errors.Join(os.RemoveAll(killed), os.RemoveAll(r.path(c.name))); err != nil {
			return figures, err
		}
	}
	return figures, nil
}

func (r *run) prepare(dir string, records int) error {
	e, err := disk.Open(dir, disk.Options{})
	if err != nil {
		return err
	}
	err = fill(r.ctx, e, "open", min(1000, records), records, 10, 100, r.data)
	return errors.Join(err, e.Close())
}

// opening measures opening alone.
func (r *run) opening(dir string) bench.Side {
	return func(_ context.Context, d time.Duration) (bench.Sample, error) {
		var spent time.Duration
		n := 0
		for start := time.Now(); n == 0 || time.Since(start) < d; n++ {
			began := time.Now()
			e, err := disk.Open(dir, disk.Options{})
			if err != nil {
				return bench.Sample{}, err
			}
			spent += time.Since(began)
			if err := e.Close(); err != nil {
				return bench.Sample{}, err
			}
		}
		return milliseconds(spent, n), nil
	}
}

func milliseconds(spent time.Duration, n int) bench.Sample {
	return bench.Sample{Value: float64(spent) / float64(time.Millisecond) / float64(n)}
}

// kill writes to a store and copies its files while it is open, as a killed process
// would leave them. The last write is durable, and the copy is taken when no file
// changes any more.
func (r *run) kill(dir, into string) error {
	e, err := disk.Open(dir, disk.Options{})
	if err != nil {
		return err
	}
	defer e.Close() //nolint:errcheck // its end does not matter any more
	if err := r.busy(e, 64, max(2, r.opts.scaled(400))); err != nil {
		return err
	}
	for {
		before, err := listing(dir)
		if err != nil {
			return err
		}
		if err := errors.Join(os.RemoveAll(into), copyTree(dir, into)); err == nil {
			if after, err := listing(dir); err == nil && before == after {
				return nil
			}
		}
		if r.ctx.Err() != nil {
			return context.Cause(r.ctx)
		}
		time.Sleep(200 * time.Millisecond)
	}
}

// busy lets many writers append one record at a time.
func (r *run) busy(e *disk.Engine, writers, each int) error {
	write := appender(e, "killed", r.data, writers)
	errs := make(chan error, writers)
	for w := range writers {
		go func() {
			for i := range each {
				if err := write(r.ctx, w, i); err != nil {
					errs <- err
					return
				}
			}
			errs <- nil
		}()
	}
	var all error
	for range writers {
		all = errors.Join(all, <-errs)
	}
	return all
}

// openingKilled measures opening a fresh copy of what a kill left.
func (r *run) openingKilled(killed string) bench.Side {
	return func(_ context.Context, d time.Duration) (bench.Sample, error) {
		work := killed + "-work"
		var spent time.Duration
		n := 0
		for start := time.Now(); n == 0 || time.Since(start) < d; n++ {
			if err := errors.Join(copyTree(killed, work), settle(work)); err != nil {
				return bench.Sample{}, err
			}
			began := time.Now()
			e, err := disk.Open(work, disk.Options{})
			if err != nil {
				return bench.Sample{}, err
			}
			spent += time.Since(began)
			if err := errors.Join(e.Close(), os.RemoveAll(work)); err != nil {
				return bench.Sample{}, err
			}
		}
		return milliseconds(spent, n), nil
	}
}

// settle syncs the copy to the disk, as the files of a killed process are. Otherwise
// the first sync of the open would pay for it.
func settle(dir string) error {
	f, err := os.Open(dir) //nolint:gosec // in the bench's own folder
	if err != nil {
		return err
	}
	return errors.Join(syncDisk(f), f.Close())
}

// readingLogs reads and checksums the live write-ahead logs.
func readingLogs(dir string) bench.Side {
	return func(_ context.Context, d time.Duration) (bench.Sample, error) {
		n := 0
		start := time.Now()
		for ; n == 0 || time.Since(start) < d; n++ {
			logs, err := filepath.Glob(filepath.Join(dir, "store", "*.log"))
			if err != nil {
				return bench.Sample{}, err
			}
			for _, log := range logs {
				if err := readLog(log); err != nil {
					return bench.Sample{}, err
				}
			}
		}
		return milliseconds(time.Since(start), n), nil
	}
}

func readLog(path string) error {
	f, err := os.Open(path) //nolint:gosec // in the bench's own folder
	if err != nil {
		return err
	}
	sum := crc32.New(castagnoli)
	_, err = io.CopyBuffer(struct{ io.Writer }{sum}, struct{ io.Reader }{f}, make([]byte, 1<<20))
	return errors.Join(err, f.Close())
}

// settled waits until no file of a store changes any more.
func (r *run) settled(dir string) error {
	last, same := "", 0
	for same < 5 {
		now, err := listing(dir)
		if err == nil && now == last {
			same++
		} else {
			last, same = now, 0
		}
		if r.ctx.Err() != nil {
			return context.Cause(r.ctx)
		}
		time.Sleep(100 * time.Millisecond)
	}
	return nil
}

// listing describes the files of a store, to detect changes.
func listing(dir string) (string, error) {
	entries, err := os.ReadDir(filepath.Join(dir, "store"))
	if err != nil {
		return "", err
	}
	var b strings.Builder
	for _, entry := range entries {
		info, err := entry.Info()
		if err != nil {
			return "", err
		}
		fmt.Fprintln(&b, entry.Name(), info.Size(), info.ModTime().UnixNano())
	}
	return b.String(), nil
}

func copyTree(from, to string) error {
	return os.CopyFS(to, os.DirFS(from))
}
