package gcpace

import (
	"runtime/debug"
	"time"
)

// checkQuiet shrinks the heap of a process that has become quiet: without
// allocations nothing else would collect it for minutes. It also drops the
// pages of the program that load used.
func (p *pace) checkQuiet() {
	if !p.becameQuiet() {
		time.AfterFunc(p.every, p.checkQuiet)
		return
	}
	began := time.Now()
	debug.FreeOSMemory()
	ForgetProgram()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.notBefore = time.Now().Add(share * time.Since(began))
}

func (p *pace) becameQuiet() bool {
	live, allocated := heap()
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	if !p.judge(now, allocated) || now.Before(p.notBefore) {
		p.quiet = false
		return false
	}
	p.set(live)
	return p.quiet
}

// judge decides whether the process is quiet, and reports whether it could: a
// short time in which little was allocated proves nothing.
func (p *pace) judge(now time.Time, allocated uint64) bool {
	passed, bytes := now.Sub(p.at), float64(allocated-p.allocated)
	least := quiet * max(passed, p.every).Seconds()
	if passed < p.every && bytes < least {
		return false
	}
	p.quiet, p.at, p.allocated = bytes < least, now, allocated
	return true
}
