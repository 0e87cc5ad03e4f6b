package agh

import "context"

// Broker carries envelopes between runtimes, as NATS does: at most once, to
// whoever is subscribed at that moment.
type Broker interface {
	// Subscribe calls handle for each message on a subject, one at a time, until
	// stop is called. The message is the handler's to keep.
	Subscribe(subject string, handle func(data []byte)) (stop func(), err error)
	// Publish sends a message; the data stay as they are until Flush.
	Publish(subject string, data []byte) error
	// Flush waits until the broker has everything that was published.
	Flush(ctx context.Context) error
	// Watch calls changed whenever the connection is lost, with why, and when it
	// is there again, with nil. It is called once, before anything else.
	Watch(changed func(err error))
	// Address is where a broker of this process listens; empty: it is elsewhere.
	Address() (host string, port int)
	Close() error
}
