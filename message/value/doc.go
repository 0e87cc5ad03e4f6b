// Package value is the JSON value model of agent messages: values from a host,
// a framework or a file, kept exactly as they were written.
//
// A value is nil, a bool, a string, a [Number], a []any or a [*Map]. A number
// stays the token that was written, members keep their order, and an empty
// array stays different from an empty object until a rule says otherwise. The
// rules that treat both alike (a "container", its truth, its text, its keys)
// are here too, because every part of the message contract shares them.
//
// It never converts a number to float64 on the way from input to output, never
// changes a value it was given, and knows nothing of messages.
package value
