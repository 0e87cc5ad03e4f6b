package access

import (
	"context"
	"sync"

	"github.com/parley-hub/parley/fault"
)

// ErrRevoked is the cause with which the context of a request ends when its key
// is revoked.
var ErrRevoked = fault.New(fault.AuthFailed, "the key was revoked while the request was served")

// lasting are the requests in progress, so that those whose key is revoked end
// at once and not at their next write.
type lasting struct {
	mu  sync.Mutex
	all map[*served]struct{}
}

type served struct {
	who Principal
	end context.CancelCauseFunc
}

// serve returns a context that ends with ctx, or when the principal is no longer
// valid. The caller calls done.
func (k *Keys) serve(ctx context.Context, who Principal) (_ context.Context, done func()) {
	if who.Role == Anonymous {
		return ctx, func() {}
	}
	ctx, end := context.WithCancelCause(ctx)
	s := &served{who, end}
	l := &k.lasting
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.all == nil {
		l.all = map[*served]struct{}{}
	}
	l.all[s] = struct{}{}
	return ctx, func() {
		l.mu.Lock()
		delete(l.all, s)
		l.mu.Unlock()
		end(nil)
	}
}

// recheck ends the requests of callers whose key is no longer valid.
func (k *Keys) recheck() {
	k.lasting.mu.Lock()
	defer k.lasting.mu.Unlock()
	for s := range k.lasting.all {
		if !k.Stands(s.who) {
			s.end(ErrRevoked)
		}
	}
}
