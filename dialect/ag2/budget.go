package ag2

import (
	"context"

	"github.com/parley-hub/parley/dialect/ag2/wire"
	"github.com/parley-hub/parley/fault"
)

// budget ends the search for a list that no client could be told: it would only
// fill the hub's memory.
type budget struct {
	room int // for so many more
	left int // bytes of a frame
	stop context.CancelCauseFunc
}

var errLongList = fault.New(fault.TooLarge,
	"the list has more than %d bytes; a client takes no larger frame, so ask for less at once", wire.MaxFrame)

// listing returns a budget for so many and the context of the search.
func listing(ctx context.Context, limit int) (*budget, context.Context) {
	ctx, stop := context.WithCancelCause(ctx)
	return &budget{room: limit, left: wire.MaxFrame, stop: stop}, ctx
}

// takes counts what takes at least so many bytes of the list. What comes behind
// a full list only shows that there is more.
func (b *budget) takes(size int) bool {
	if b.room--; b.room < 0 {
		return true
	}
	if b.left -= size; b.left < 0 {
		b.stop(errLongList)
	}
	return b.left >= 0
}

// close ends the search, and says why it failed.
func (b *budget) close(err error) error {
	b.stop(nil)
	if b.left < 0 {
		return errLongList
	}
	return err
}
