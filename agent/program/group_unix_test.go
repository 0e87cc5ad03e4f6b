//go:build unix

package program_test

import (
	"os"
	"os/exec"
	"syscall"
	"testing"

	"github.com/parley-hub/parley/agent"
	"github.com/parley-hub/parley/agent/program"
)

// leave starts a child that leaves the group, and holds standard output.
func leave(address string) error {
	child := exec.Command(os.Args[0], address)
	child.Env = append(os.Environ(), role+"=hold")
	child.Stdout, child.Stderr = os.Stdout, os.Stderr
	child.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	return child.Start()
}

// A process that leaves the group is not ended with it, and does not delay a
// turn.
func TestWhatLeavesTheGroupHoldsUpNothing(t *testing.T) {
	t.Parallel()
	address, conns := held(t)
	got, err := ask(t, newProgram(t, "leave", program.Options{}, address), &agent.Prompt{})
	if err != nil || got.Text != "gone" {
		t.Errorf("got %+v, %v", got, err)
	}
	_ = (<-conns).Close() // which ends the child
}
