package disk

import "time"

// checkInterval is how often the committer checks that the files are still the
// ones that were opened, while batches become durable.
const checkInterval = 100 * time.Millisecond

// replaced returns an error if files of the store are gone. It is called before a
// group is acknowledged, and checks when Pebble has begun a new log and every checkEvery.
func (e *Engine) replaced() error {
	now := time.Now()
	log := e.opened.Current()
	if log == e.checkedLog && now.Sub(e.checkedAt) < e.opts.checkEvery {
		return nil
	}
	e.checkedLog, e.checkedAt = log, now
	return e.opened.Check()
}
