//go:build unix

package bench

import (
	"syscall"
	"time"
)

// CPU returns the CPU time of the whole process.
func CPU() time.Duration {
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		return 0
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}
