// Package wire has AG2's LINK protocol as Go types: frames, envelopes, records and
// operations, read tolerantly and written with exactly the keys that AG2's client
// knows. It does no I/O, checks no rights and never changes a payload.
package wire
