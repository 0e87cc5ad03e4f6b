package hubbench

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/parley-hub/parley/hub"
	"github.com/parley-hub/parley/internal/bench"
)

// fewDue is how many of the channels are due in one sweep.
const fewDue = 10

// due counts what a sweep over the deadlines of many idle channels loads and reads when
// few are due, in a hub that was just opened.
func due(ctx context.Context, o Options) (figures []bench.Figure, err error) {
	dir := filepath.Join(o.Dir, "due")
	s, err := open(ctx, dir, hub.Options{})
	if err != nil {
		return nil, err
	}
	for seconds, n := range map[int]int{36_000: o.Channels, 60: fewDue} {
		knobs := fmt.Appendf(nil, `{"expectations":[{"name":"max_silence","on_violation":"audit","params":{"seconds":%d}}]}`, seconds)
		_, failed := s.channels(ctx, n, "conversation", knobs, 0)
		err = errors.Join(err, failed)
	}
	if err = errors.Join(err, s.close()); err != nil {
		return nil, err
	}
	fs := &readFS{FS: vfs.Default}
	later := func() time.Time { return time.Now().Add(time.Hour) }
	if s, err = openOn(ctx, dir, fs, hub.Options{Now: later}); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	loaded, read := s.hub.Stats().ChannelsLoaded, fs.bytes.Load()
	if n := s.hub.SweepExpectations(ctx); n != fewDue {
		return nil, fmt.Errorf("a look at the deadlines found %d channels, and %d are due", n, fewDue)
	}
	what := fmt.Sprintf("when %d of %d channels are due", fewDue, o.Channels)
	return []bench.Figure{
		bench.Counted("channels loaded "+what, float64(s.hub.Stats().ChannelsLoaded-loaded), "channels", ptr(fewDue)),
		bench.Counted("read from disk "+what, float64(fs.bytes.Load()-read)/1024, "KiB", ptr(1024)),
	}, nil
}

// readFS counts the bytes that are read from files.
type readFS struct {
	vfs.FS
	bytes atomic.Int64
}

func (c *readFS) Open(name string, opts ...vfs.OpenOption) (vfs.File, error) {
	f, err := c.FS.Open(name, opts...)
	if err != nil {
		return nil, err
	}
	return &readFile{File: f, fs: c}, nil
}

type readFile struct {
	vfs.File
	fs *readFS
}

func (f *readFile) Read(b []byte) (int, error) {
	n, err := f.File.Read(b)
	f.fs.bytes.Add(int64(n))
	return n, err
}

func (f *readFile) ReadAt(b []byte, at int64) (int, error) {
	n, err := f.File.ReadAt(b, at)
	f.fs.bytes.Add(int64(n))
	return n, err
}
