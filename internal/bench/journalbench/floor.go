package journalbench

import (
	"encoding/binary"
	"hash/crc32"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// floor is the least that durable appends can cost: one file, grown in steps of
// 64 MiB, records with a checksum, one committer that shares each sync among
// all who wait and fills for at most 100 µs.
type floor struct {
	file *os.File
	at   int64
	size int64

	mu       sync.Mutex
	group    *floorGroup
	gathered atomic.Int64
	wake     chan struct{}
	stop     chan struct{}
	done     chan struct{}
}

type floorGroup struct {
	buf   []byte
	count int64
	done  chan struct{}
	err   error
}

const (
	floorStep = 64 << 20
	floorMost = 2 << 30 // then it starts over, as a rotated log does
	floorFill = 100 * time.Microsecond
	frameLen  = 8 // length and checksum
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func newFloor(path string) (*floor, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600) //nolint:gosec // in the bench's own folder
	if err != nil {
		return nil, err
	}
	fl := &floor{
		file: f, group: &floorGroup{done: make(chan struct{})},
		wake: make(chan struct{}, 1), stop: make(chan struct{}), done: make(chan struct{}),
	}
	go fl.commitLoop()
	return fl, nil
}

// append adds a record and returns when it is durable.
func (f *floor) append(data []byte) error {
	sum := crc32.Checksum(data, castagnoli)
	f.mu.Lock()
	g := f.group
	g.buf = binary.LittleEndian.AppendUint32(g.buf, uint32(len(data)))
	g.buf = binary.LittleEndian.AppendUint32(g.buf, sum)
	g.buf = append(g.buf, data...)
	g.count++
	first := f.gathered.Add(1) == 1
	f.mu.Unlock()
	if first {
		select {
		case f.wake <- struct{}{}:
		default:
		}
	}
	<-g.done
	return g.err
}

func (f *floor) commitLoop() {
	defer close(f.done)
	var spare []byte
	for {
		select {
		case <-f.wake:
		case <-f.stop:
			return
		}
		for {
			f.mu.Lock()
			g := f.group
			if g.count == 0 {
				f.mu.Unlock()
				break
			}
			f.group = &floorGroup{done: make(chan struct{}), buf: spare[:0]}
			f.gathered.Store(0)
			f.mu.Unlock()
			g.err = f.commit(g.buf)
			spare = g.buf
			close(g.done)
			until := time.Now().Add(floorFill)
			for f.gathered.Load() < g.count && time.Now().Before(until) {
				runtime.Gosched()
			}
		}
	}
}

func (f *floor) commit(buf []byte) error {
	if f.at+int64(len(buf)) > floorMost {
		if err := f.file.Truncate(0); err != nil {
			return err
		}
		f.at, f.size = 0, 0
	}
	for f.at+int64(len(buf)) > f.size {
		if err := preallocate(f.file, f.size, floorStep); err != nil {
			return err
		}
		f.size += floorStep
		if err := f.file.Sync(); err != nil {
			return err
		}
	}
	if _, err := f.file.WriteAt(buf, f.at); err != nil {
		return err
	}
	f.at += int64(len(buf))
	return syncData(f.file)
}

func (f *floor) close() error {
	close(f.stop)
	<-f.done
	return f.file.Close()
}
