package api

import (
	"net/http"

	"github.com/parley-hub/parley/fault"
)

// backup streams an archive. Its last entry lists the others, so that one that
// was cut off is never taken for a whole one.
func (a *API) backup(c *call) error {
	if a.cfg.Backup == nil {
		return fault.New(fault.Unavailable, "this hub's engine makes no backups")
	}
	c.Header().Set("Content-Type", "application/x-tar")
	c.Header().Set("Cache-Control", "no-store")
	c.WriteHeader(http.StatusOK)
	if err := a.cfg.Backup(c.Context(), c.ResponseWriter); err != nil {
		a.log.Error("backup failed", "error", err)
		panic(http.ErrAbortHandler) // the caller sees a cut connection, not an end
	}
	return nil
}
