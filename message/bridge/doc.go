// Package bridge is the queue of replies for clients that fetch them: a remote
// bridge polls what is pending for it and acknowledges what it has.
//
// Delivery is at least once: an item stays listed until its own client
// acknowledges it. Nothing here sends anything.
package bridge
