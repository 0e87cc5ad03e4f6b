package disk

// Space returns how many bytes the store uses and how many are free on its disk.
func (e *Engine) Space() (used, free uint64, err error) {
	usage, err := e.opts.FS.GetDiskUsage(e.dir)
	if err != nil {
		return 0, 0, err
	}
	e.mu.Lock()
	closed := e.failure != nil || e.closed
	e.mu.Unlock()
	if closed {
		return 0, usage.AvailBytes, nil
	}
	return e.db.Metrics().DiskSpaceUsage(), usage.AvailBytes, nil
}
