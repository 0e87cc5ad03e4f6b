package api

import (
	"net/http"

	"github.com/parley-hub/parley/fault"
)

// backup streams an archive. Its last entry lists the others, so that a truncated
// archive is recognized. One backup runs at a time: each holds a checkpoint of the
// store until it is read.
func (a *API) backup(c *call) error {
	if a.cfg.Backup == nil {
		return fault.New(fault.Unavailable, "this hub's engine makes no backups")
	}
	if !a.backingUp.CompareAndSwap(false, true) {
		return fault.New(fault.Unavailable, "a backup is being made; try again when it has ended")
	}
	defer a.backingUp.Store(false)
	c.Header().Set("Content-Type", "application/x-tar")
	c.Header().Set("Cache-Control", "no-store")
	c.WriteHeader(http.StatusOK)
	if err := a.cfg.Backup(c.Context(), c.ResponseWriter); err != nil {
		a.log.Error("backup failed", "error", err)
		panic(http.ErrAbortHandler) // so that the caller sees a broken connection
	}
	return nil
}
