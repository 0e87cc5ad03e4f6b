package gcpace

import (
	"bytes"
	"fmt"
	"os"
	"syscall"
)

// ForgetProgram takes the pages of the program itself out of the process's memory.
// Starting uses most of them, running few; those that are used again are mapped again
// from the system's cache of the file.
func ForgetProgram() {
	file, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return
	}
	maps, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		return
	}
	for _, m := range mappingsOf(maps, file) {
		// What cannot be forgotten stays: there is nothing to do about it.
		_, _, _ = syscall.Syscall(syscall.SYS_MADVISE, m.from, m.to-m.from, syscall.MADV_DONTNEED)
	}
}

// mapping is a part of a process's memory.
type mapping struct{ from, to uintptr }

// mappingsOf lists the read-only mappings of a file, from text in the form of
// /proc/PID/smaps. Mappings with pages that only the process has, such as
// relocated ones, are left out.
func mappingsOf(maps []byte, file string) []mapping {
	var list []mapping
	own := true // until the mapping that the lines are of says otherwise
	for line := range bytes.Lines(maps) {
		line = bytes.TrimSpace(line)
		var m mapping
		var mode string
		if n, _ := fmt.Sscanf(string(line), "%x-%x %s", &m.from, &m.to, &mode); n == 3 {
			if own = !bytes.HasSuffix(line, []byte(" "+file)) || mode != "r-xp" && mode != "r--p"; !own {
				list = append(list, m)
			}
			continue
		}
		if kib, ok := bytes.CutPrefix(line, []byte("Anonymous:")); ok && !own && !bytes.HasPrefix(bytes.TrimSpace(kib), []byte("0 ")) {
			list = list[:len(list)-1]
		}
	}
	return list
}
