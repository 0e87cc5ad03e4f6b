package ag2bench

import (
	"context"

	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/internal/bench"
)

// Measurements that benches of other dialects use.

// Delivery measures a post until another connection of a hub has it, p50 in
// microseconds. Stop closes the connections.
func Delivery(ctx context.Context, url string) (side bench.Side, stop func(), err error) {
	p, err := converse(ctx, url)
	if err != nil {
		return nil, nil, err
	}
	return p.side, p.close, nil
}

// Reader is an identity on a connection of its own, which only reads.
type Reader struct{ peer *peer }

// Read registers an identity and reads for it.
func Read(ctx context.Context, url, name string) (*Reader, error) {
	p, err := join(ctx, url, name)
	return &Reader{p}, err
}

// Text waits for the next text.
func (r *Reader) Text() error {
	_, err := r.peer.notified(envelope.TypeText)
	return err
}

// Close ends the connection.
func (r *Reader) Close() { r.peer.close() }
