//go:build !unix

package cluster_test

// nodeIfTold does nothing: processes are paused and killed only on Unix.
func nodeIfTold() {}
