//go:build !linux

package gcpace

// ForgetProgram does nothing where pages of a program cannot be forgotten.
func ForgetProgram() {}
