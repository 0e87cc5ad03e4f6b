package journalbench

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math/rand/v2"
	"os"
	"time"

	"github.com/parley-hub/parley/internal/bench"
	"github.com/parley-hub/parley/journal"
	"github.com/parley-hub/parley/journal/disk"
)

// reads compares reading a long log with replaying a checksummed file.
func (r *run) reads() ([]bench.Figure, error) {
	n := r.opts.scaled(200_000)
	e, err := disk.Open(r.path("reads"), disk.Options{})
	if err != nil {
		return nil, err
	}
	f, err := r.readFigure(e, n)
	return []bench.Figure{f}, errors.Join(err, e.Close(), os.RemoveAll(r.path("reads")), os.Remove(r.path("replay")))
}

func (r *run) readFigure(e *disk.Engine, n int) (bench.Figure, error) {
	if err := fill(r.ctx, e, "long", 1, n, 512, recordLen, r.data); err != nil {
		return bench.Figure{}, err
	}
	if err := writeFrames(r.path("replay"), n, r.data); err != nil {
		return bench.Figure{}, err
	}
	log := partition.In("long", "0")
	return bench.Contest{
		Name: "sequential read of a long log", Unit: "records/s", Better: bench.Higher, Target: new(0.06),
		Ours: func(ctx context.Context, d time.Duration) (bench.Sample, error) {
			return passes(d, n, func() (int, error) {
				seen := 0
				opts := journal.ReadOptions{Limits: journal.Limits{Entries: journal.MaxPageEntries, Bytes: journal.MaxPageBytes}}
				for _, err := range journal.Records(ctx, e, log, opts) {
					if err != nil {
						return seen, err
					}
					seen++
				}
				return seen, nil
			})
		},
		Floor: func(_ context.Context, d time.Duration) (bench.Sample, error) {
			return passes(d, n, func() (int, error) { return readFrames(r.path("replay")) })
		},
	}.Run(r.ctx, r.opts.Plan)
}

// passes reads everything again and again, at least once.
func passes(d time.Duration, n int, pass func() (int, error)) (bench.Sample, error) {
	start := time.Now()
	total := 0
	for total == 0 || time.Since(start) < d {
		seen, err := pass()
		if err != nil {
			return bench.Sample{}, err
		}
		if seen != n {
			return bench.Sample{}, fmt.Errorf("read %d records of %d", seen, n)
		}
		total += seen
	}
	return bench.Sample{Value: float64(total) / time.Since(start).Seconds()}, nil
}

func writeFrames(path string, n int, data [][]byte) error {
	f, err := os.Create(path) //nolint:gosec // in the bench's own folder
	if err != nil {
		return err
	}
	w := bufio.NewWriterSize(f, 1<<20)
	var head [frameLen]byte
	for i := range n {
		record := data[i%len(data)]
		binary.LittleEndian.PutUint32(head[:], uint32(len(record)))
		binary.LittleEndian.PutUint32(head[4:], crc32.Checksum(record, castagnoli))
		_, _ = w.Write(head[:])
		_, _ = w.Write(record)
	}
	return errors.Join(w.Flush(), f.Close())
}

func readFrames(path string) (int, error) {
	f, err := os.Open(path) //nolint:gosec // in the bench's own folder
	if err != nil {
		return 0, err
	}
	defer f.Close() //nolint:errcheck // only read
	rd := bufio.NewReaderSize(f, 1<<20)
	var head [frameLen]byte
	buf := make([]byte, recordLen)
	for n := 0; ; n++ {
		if _, err := io.ReadFull(rd, head[:]); errors.Is(err, io.EOF) {
			return n, nil
		} else if err != nil {
			return n, err
		}
		record := buf[:binary.LittleEndian.Uint32(head[:])]
		if _, err := io.ReadFull(rd, record); err != nil {
			return n, err
		}
		if crc32.Checksum(record, castagnoli) != binary.LittleEndian.Uint32(head[4:]) {
			return n, errors.New("a frame is damaged")
		}
	}
}

// tails counts the blocks that reading the last records of a log takes, with
// few logs and with many.
func (r *run) tails() ([]bench.Figure, error) {
	few, err := r.tailBlocks(r.opts.scaled(1_000))
	if err != nil {
		return nil, err
	}
	many, err := r.tailBlocks(r.opts.scaled(100_000))
	if err != nil {
		return nil, err
	}
	return []bench.Figure{
		bench.Counted(fmt.Sprintf("last 50 records of one of %d logs", r.opts.scaled(1_000)), few, "block reads", nil),
		bench.Counted(fmt.Sprintf("last 50 records of one of %d logs", r.opts.scaled(100_000)), many, "block reads", new(2*few+2)),
	}, nil
}

func (r *run) tailBlocks(logs int) (blocks float64, err error) {
	dir := r.path(fmt.Sprint("tails-", logs))
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	e, err := disk.Open(dir, disk.Options{})
	if err != nil {
		return 0, err
	}
	err = fill(r.ctx, e, "tail", logs, logs*50, 10, 40, r.data)
	if err == nil {
		err = r.settled(dir)
	}
	if err := errors.Join(err, e.Close()); err != nil {
		return 0, err
	}
	fs := newCountFS()
	// The cache is tiny, so that every block that is looked up is read.
	if e, err = disk.Open(dir, disk.Options{FS: fs, CacheBytes: -1}); err != nil {
		return 0, err
	}
	rng := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // which logs does not matter
	const samples = 200
	read := func() error {
		log := partition.In("tail", fmt.Sprint(rng.IntN(logs)))
		page, err := e.Read(r.ctx, log, journal.ReadOptions{Backward: true, Limits: journal.Limits{Entries: 50}})
		if err == nil && len(page.Entries) != 50 {
			err = fmt.Errorf("read %d records", len(page.Entries))
		}
		return err
	}
	for range 50 { // tables are opened once
		if err := read(); err != nil {
			return 0, errors.Join(err, e.Close())
		}
	}
	before := fs.reads.Load()
	for range samples {
		if err := read(); err != nil {
			return 0, errors.Join(err, e.Close())
		}
	}
	return float64(fs.reads.Load()-before) / samples, e.Close()
}
