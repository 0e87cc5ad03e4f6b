// Package ag2 serves AG2's LINK protocol over WebSocket, so that unmodified
// AG2 clients use the hub. It translates frames, knows which identities a
// connection has proved, and decides who may call what. It never stores
// anything and never judges a conversation: the hub does.
package ag2
