//go:build unix

package main

import (
	"fmt"
	"os"
	"syscall"
)

// mainAsNobody is the program for a user without privileges. Root may read every
// folder, and tests may run as root.
func mainAsNobody() {
	const nobody = 65534
	if os.Getuid() == 0 {
		if err := syscall.Setuid(nobody); err != nil {
			fmt.Fprintln(os.Stderr, "become nobody:", err)
			os.Exit(exitFailed)
		}
	}
	main()
}
