package request

// Asking is a request before it is stored.
type Asking struct {
	Request
	// Key, if given, makes the request idempotent: the same asker and key find
	// the earlier request of the channel.
	Key string
}
