// Package external is the edge towards chat networks: what a channel or bridge
// received, in one shape; keys that make a redelivered message recognizable;
// the map from an external conversation to a session; and the check of a
// webhook's signature.
//
// It parses no vendor's payload, opens no connection and runs no agent.
package external
