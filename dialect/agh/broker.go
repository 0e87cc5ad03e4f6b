package agh

import "context"

// Broker carries envelopes between runtimes, as NATS does: at most once, to the
// current subscribers.
type Broker interface {
	// Subscribe calls handle for each message on a subject, one at a time, until stop
	// is called. The handler may keep the message.
	Subscribe(subject string, handle func(data []byte)) (stop func(), err error)
	// Publish sends a message; the data must not change until Flush.
	Publish(subject string, data []byte) error
	// Flush waits until the broker has everything that was published.
	Flush(ctx context.Context) error
	// Watch calls changed with an error whenever the connection is lost, and with nil
	// when it is back. Watch is called once, before the other methods.
	Watch(changed func(err error))
	// Address returns where a broker of this process listens; empty: it is external.
	Address() (host string, port int)
	Close() error
}
