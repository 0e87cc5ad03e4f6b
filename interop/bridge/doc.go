// Package bridge has ends of every dialect in one conversation: AG2's own Python
// client, a NATS peer, HPD's TypeScript driver and a person over /v1, against a real
// hub that is killed in between.
package bridge
