// Package transcript is the contract of a store of sessions: its owner, its
// messages as canonical envelopes, a lock for its one writer, and listing.
//
// A store normalizes every message that is written, and refuses a write with
// one that cannot be normalized. It normalizes every row that is read, and
// reports a bad row in its place instead of failing the others. Neither a
// provider's shape nor a host's object is ever stored.
//
// Memory is the store of tests and single processes. Every store passes the
// suite in transcripttest.
package transcript
