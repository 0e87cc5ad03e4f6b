// Package stream takes messages through normalization and projection one at a
// time: a file of any size, as a JSON array or as one JSON value after another,
// in the memory of its largest message.
//
// It never holds a whole file, and never skips a message in silence.
package stream
