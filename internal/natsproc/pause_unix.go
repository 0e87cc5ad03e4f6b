//go:build unix

package natsproc

import "syscall"

// Pause stops a server's process until Resume.
func (c *Cluster) Pause(i int) error { return c.signal(i, syscall.SIGSTOP) }

// Resume lets a paused server continue.
func (c *Cluster) Resume(i int) error { return c.signal(i, syscall.SIGCONT) }

func (c *Cluster) signal(i int, s syscall.Signal) error {
	if c.servers[i].cmd == nil {
		return nil
	}
	return c.servers[i].cmd.Process.Signal(s)
}
