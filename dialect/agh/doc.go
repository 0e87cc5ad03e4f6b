// Package agh is a runtime of the AGH Network: it hosts peers in the channels of
// workspaces, sends and receives their envelopes, and keeps every conversation in the
// hub's log. It decodes, calls the hub and encodes; the adapters decide what a
// conversation or a piece of work allows.
package agh
