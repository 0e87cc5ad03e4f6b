// Package arch holds the architecture's rules as tests: which package may
// import which, and that each says what it is for. It has no code of its own
// and is never imported.
package arch
