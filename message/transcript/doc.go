// Package transcript is the contract of a store of sessions: who owns one, its
// messages as canonical envelopes, a lock for its one writer, and listing.
//
// A store normalizes on the way in and refuses a write that holds a message
// that cannot be; on the way out it normalizes row by row and reports a bad
// row in its place instead of hiding the good ones. Neither a provider's shape
// nor a host's object is ever stored.
//
// Memory is the store of tests and single processes. Every store passes the
// suite in transcripttest.
package transcript
