package access

import "context"

// Seat counts a request's connection against a key's share. A dialect whose
// clients prove their identity after they have connected calls it. The error
// says that the share is used up.
type Seat func(key string) error

type seatKey struct{}

// WithSeat returns a context that carries a connection's seat.
func WithSeat(ctx context.Context, s Seat) context.Context {
	return context.WithValue(ctx, seatKey{}, s)
}

// SeatOf returns the seat of a request's connection; there always is one.
func SeatOf(ctx context.Context) Seat {
	if s, ok := ctx.Value(seatKey{}).(Seat); ok {
		return s
	}
	return func(string) error { return nil }
}
