// Package wire is the AGH Network v0 envelope as Go types: decoding and
// validation in the ruling order, the bodies of the six kinds, the derived ids
// and subjects, canonical JSON, and the proofs of the v1 trust profile. It
// knows no hub and no transport, and never reads a clock: callers say what
// time it is.
package wire
