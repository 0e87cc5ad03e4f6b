//go:build unix

package program

import (
	"os"
	"os/exec"
	"sync"
	"syscall"
)

// group is a process group: the program and all that it starts.
type group struct {
	mu     sync.Mutex
	leader int
	ended  bool
}

func newGroup(cmd *exec.Cmd) (*group, error) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return &group{}, nil
}

func (g *group) add(p *os.Process) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.leader = p.Pid
}

// end kills every process of the group, once: afterwards another group may have
// its number.
func (g *group) end() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.leader > 0 && !g.ended {
		g.ended = true
		_ = syscall.Kill(-g.leader, syscall.SIGKILL) // none is left: there is nothing to end
	}
}
