// Package agh lets peers that know only the AGH Network's text and a NATS client
// (package peer) talk with a real hub: over a NATS server in a process of its
// own, and over the hub's. It is a module of its own and shares no code with the
// hub.
package agh
