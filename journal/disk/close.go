package disk

import (
	"errors"
	"fmt"
	"time"

	"github.com/parley-hub/parley/journal"
	"github.com/parley-hub/parley/journal/disk/internal/datadir"
	"github.com/parley-hub/parley/journal/disk/internal/storefs"
)

// closePatience bounds how long a failed engine waits for its disk.
const closePatience = 3 * time.Second

// Close implements journal.Engine. An engine that failed is closed as far as its
// disk allows; goroutines that are stuck are left behind, and the process should
// end.
func (e *Engine) Close() error {
	e.closing.Do(func() { e.closeErr = e.close() })
	return e.closeErr
}

func (e *Engine) close() error {
	e.mu.Lock()
	e.closed = true
	e.wakeAppends()
	e.mu.Unlock()
	close(e.stop)
	ended := make(chan error, 1)
	go func() {
		<-e.done // the committer has ended every ordered batch
		e.bell.Close(journal.ErrClosed)
		e.helpers.Wait()
		e.readers.Wait()
		ended <- e.closeStore()
	}()
	err := e.awaitClose(ended)
	e.bell.Close(journal.ErrClosed)
	close(e.stopped)
	<-e.kept
	return err
}

// awaitClose waits for the store to be closed. If the engine has failed, or fails
// meanwhile, it waits at most closePatience.
func (e *Engine) awaitClose(ended <-chan error) error {
	select {
	case err := <-ended:
		return err
	case <-e.failed:
	}
	timer := time.NewTimer(closePatience)
	defer timer.Stop()
	select {
	case err := <-ended:
		return err
	case <-timer.C:
		e.mu.Lock()
		defer e.mu.Unlock()
		return fmt.Errorf("the store does not answer and is left open: %w", e.failure)
	}
}

// closeStore closes Pebble, and calls vouch if that succeeded. It keeps the
// folder's lock if something may still be writing.
func (e *Engine) closeStore() (err error) {
	defer func() {
		if p := recover(); p != nil {
			e.wedged.Store(true)
			err = fmt.Errorf("closing the store: %v", p)
		}
	}()
	failed := func() error {
		e.mu.Lock()
		defer e.mu.Unlock()
		if e.failure == nil {
			return nil
		}
		return fmt.Errorf("closed after a failure: %w", e.failure)
	}
	if e.wedged.Load() {
		e.compactions.Halt()
		return errors.Join(failed(), errors.New("the store is left open"))
	}
	e.view.release()
	_ = e.group.batch.Close()
	if err := failed(); err != nil {
		return errors.Join(err, e.db.Close(), e.mark.File.Close(), e.lock.Close())
	}
	if err := e.guard.Hand(e.db.Flush); err != nil {
		return err
	}
	if err := e.guard.Hand(e.db.Close); err != nil {
		return errors.Join(err, e.mark.File.Close(), e.lock.Close())
	}
	return errors.Join(e.vouch(), e.mark.File.Close(), e.lock.Close())
}

// vouch writes MARK and SEAL for a store that was flushed and closed.
func (e *Engine) vouch() error {
	fs := e.opts.FS
	if err := e.mark.Write(e.epoch, e.durable.Load()); err != nil {
		return err
	}
	s, err := datadir.MakeSeal(fs, fs.PathJoin(e.dir, datadir.StoreDir), e.epoch, e.durable.Load())
	if err != nil {
		return err
	}
	return storefs.WriteFile(fs, e.dir, datadir.SealFile, s.Encode())
}
