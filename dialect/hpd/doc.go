// Package hpd serves HPD's hosted API: sessions, branches, runs, live and
// durable events over server-sent events and WebSocket. The routes exist under
// two names, branches and threads; what is stored and decided has one. It
// writes to the hub only, and never decides what an event means: package wire
// reads and writes them, and the branch adapter holds their order.
package hpd
