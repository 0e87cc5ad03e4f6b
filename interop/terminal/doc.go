// Package terminal drives the screens of parley in tmux, as a person would.
package terminal
