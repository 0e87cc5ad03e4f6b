package program

import (
	"os"
	"os/exec"
	"sync"
	"unsafe"

	"golang.org/x/sys/windows"
)

// group is a job object, which ends the program and all that it starts.
type group struct {
	mu      sync.Mutex
	job     windows.Handle
	process *os.Process
}

func newGroup(*exec.Cmd) (*group, error) {
	job, err := windows.CreateJobObject(nil, nil)
	if err != nil {
		return nil, err
	}
	limits := windows.JOBOBJECT_EXTENDED_LIMIT_INFORMATION{
		BasicLimitInformation: windows.JOBOBJECT_BASIC_LIMIT_INFORMATION{LimitFlags: windows.JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE},
	}
	_, err = windows.SetInformationJobObject(job, windows.JobObjectExtendedLimitInformation,
		uintptr(unsafe.Pointer(&limits)), uint32(unsafe.Sizeof(limits)))
	if err != nil {
		_ = windows.CloseHandle(job)
		return nil, err
	}
	return &group{job: job}, nil
}

// add puts a process that has just started into the job. What it started
// before that is not in it.
func (g *group) add(p *os.Process) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.process = p
	handle, err := windows.OpenProcess(windows.PROCESS_SET_QUOTA|windows.PROCESS_TERMINATE, false, uint32(p.Pid))
	if err != nil {
		return // it has ended
	}
	defer windows.CloseHandle(handle)
	_ = windows.AssignProcessToJobObject(g.job, handle) // else end ends the process alone
}

// end ends every process of the job. It may be called again.
func (g *group) end() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.process != nil {
		_ = g.process.Kill()
	}
	if g.job != 0 {
		_ = windows.TerminateJobObject(g.job, 1)
		_ = windows.CloseHandle(g.job)
		g.job = 0
	}
}
