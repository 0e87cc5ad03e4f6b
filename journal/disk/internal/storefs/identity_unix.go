//go:build unix

package storefs

import (
	"os"
	"syscall"
)

func identityOf(info os.FileInfo) identity {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return identity{}
	}
	return identity{device: uint64(stat.Dev), inode: uint64(stat.Ino)} //nolint:unconvert // types differ by system
}
