package main

import "testing"

// A demo that is killed cannot end its hub, and must not leave it behind.
func TestKilledDemoTakesItsHubAlong(t *testing.T) {
	t.Parallel()
	p := playDemo(t)
	if err := p.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = p.cmd.Wait() // it was killed: there is no other end
	p.closed(t)
}
