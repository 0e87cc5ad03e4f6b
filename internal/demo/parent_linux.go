package demo

import (
	"os/exec"
	"syscall"
)

// endWithParent shuts the demo's hub down when the demo is killed and cannot
// do it itself.
func endWithParent(c *exec.Cmd) { c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM} }
