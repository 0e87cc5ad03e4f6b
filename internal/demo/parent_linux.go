package demo

import (
	"os/exec"
	"syscall"
)

// endWithParent ends the demo's hub in good order when the demo is killed and
// cannot do it.
func endWithParent(c *exec.Cmd) { c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM} }
