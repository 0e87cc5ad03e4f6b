// Package apply runs single operations of the message contract from JSON
// lines: what `parley message apply` does, and how vectors are run.
//
// One line in, one line out, in order, in the memory of the largest line.
package apply
