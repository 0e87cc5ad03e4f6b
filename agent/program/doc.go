// Package program is a model made of any program: each time it is asked, the
// program is started, reads one JSON object from standard input and prints one
// to standard output. Their schemas are agent-turn and agent-answer. Programs can
// also be the tools of another model (schema agent-tools).
//
// A program runs for a limited time, prints a limited amount, and leaves no
// process behind. It never sees the hub, and what it prints to standard error
// never reaches the hub.
package program
