//go:build unix

package hubbench

import (
	"syscall"
	"time"
)

// usage is the CPU time of the whole process.
func usage() time.Duration {
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		return 0
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}
