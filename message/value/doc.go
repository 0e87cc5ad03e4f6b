// Package value is the JSON value model of agent messages: what a host, a
// framework or a file hands over, kept exactly as it was written.
//
// A value is nil, a bool, a string, a [Number], a []any or a [*Map]. Numbers
// stay the token they were written as, members keep their order, and an empty
// array stays different from an empty object until a rule says otherwise. The
// rules that treat both alike (a "container", its truth, its text, its keys)
// live here too, because every part of the message contract shares them.
//
// It never passes a number through float64 on the way from input to output,
// never changes a value it was given, and knows nothing of messages.
package value
