// Package wsconn is the WebSocket transport that every dialect uses: it
// upgrades requests, reads whole messages within limits, queues outgoing
// frames without ever waiting for a slow reader, writes them with few system
// calls, keeps connections alive and closes them in good order. It knows no
// dialect: what a message means is the handler's business.
package wsconn
