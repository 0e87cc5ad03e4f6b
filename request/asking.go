package request

// Asking is a request to be asked.
type Asking struct {
	Request
	// Key, if given, finds the request again that the same asker asked with it in
	// the channel before.
	Key string
}
