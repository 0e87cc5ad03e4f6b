package disk

import (
	"errors"
	"fmt"
	"time"

	"github.com/parley-hub/parley/journal"
)

// closePatience bounds how long a failed engine waits for its disk.
const closePatience = 5 * time.Second

// Close implements journal.Engine. An engine that failed is closed as far as
// its disk lets it; what is stuck is left behind, and the process should end.
func (e *Engine) Close() error {
	e.closing.Do(func() { e.closeErr = e.close() })
	return e.closeErr
}

func (e *Engine) close() error {
	e.mu.Lock()
	e.closed = true
	e.lookAgain()
	e.mu.Unlock()
	close(e.stop)
	select {
	case <-e.done: // what was ordered has ended
	case <-e.failed:
	}
	e.bell.Close(journal.ErrClosed)
	e.mu.Lock()
	failure := e.failure
	e.mu.Unlock()
	if failure != nil {
		return e.abandon(failure)
	}
	e.helpers.Wait()
	e.readers.Wait()
	e.view.release()
	_ = e.group.batch.Close()
	return e.sealStore()
}

// sealStore flushes and closes a healthy store, and vouches for it.
func (e *Engine) sealStore() (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("closing the store: %v", p)
		}
	}()
	fs := e.opts.FS
	err = errors.Join(e.db.Flush(), e.db.Close())
	if err == nil && !e.wedged.Load() {
		err = e.mark.write(e.epoch, e.durable.Load())
	}
	err = errors.Join(err, e.mark.file.Close())
	if err == nil && !e.wedged.Load() {
		var s seal
		if s, err = makeSeal(fs, fs.PathJoin(e.dir, storeDir), e.epoch, e.durable.Load()); err == nil {
			err = writeFile(fs, e.dir, sealFile, s.encode())
		}
	}
	return errors.Join(err, e.lock.Close())
}

// abandon closes a failed engine. The lock is kept when something may still be
// writing.
func (e *Engine) abandon(failure error) error {
	left := make(chan struct{})
	go func() {
		<-e.done
		e.helpers.Wait()
		e.readers.Wait()
		close(left)
	}()
	timer := time.NewTimer(closePatience)
	defer timer.Stop()
	select {
	case <-left:
	case <-timer.C:
		return fmt.Errorf("the store does not answer and is left open: %w", failure)
	}
	if e.wedged.Load() {
		return fmt.Errorf("the store is left open: %w", failure)
	}
	e.view.release()
	err := e.closeFailed()
	return errors.Join(fmt.Errorf("closed after a failure: %w", failure), err, e.mark.file.Close(), e.lock.Close())
}

func (e *Engine) closeFailed() (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("closing the store: %v", p)
		}
	}()
	return e.db.Close()
}
