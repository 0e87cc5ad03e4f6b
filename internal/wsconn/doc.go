// Package wsconn is the WebSocket transport that every dialect uses: it
// upgrades requests, reads whole messages within limits, queues outgoing
// frames without ever waiting for a slow reader, writes them with few system
// calls, keeps connections alive and closes them cleanly. It knows no dialect:
// a handler interprets the messages.
package wsconn
