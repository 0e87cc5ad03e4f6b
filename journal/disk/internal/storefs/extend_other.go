//go:build !linux

package storefs

import (
	"errors"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// extend is not supported on this system: logs grow as they are written.
func extend(vfs.File, int64, []byte) error { return errors.ErrUnsupported }
