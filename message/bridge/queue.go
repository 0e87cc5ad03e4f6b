package bridge

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// Limits of a queue.
const (
	// DefaultPending is how many items Pending lists by default.
	DefaultPending = 25
	// DefaultCapacity is how many items a queue holds by default.
	DefaultCapacity = 10000
)

// ErrForeign says that an item's id is taken by another client.
var ErrForeign = errors.New("bridge: the queue id belongs to another client; use another id")

// ErrFull says that the queue holds as many items as it may.
var ErrFull = errors.New("bridge: the queue is full; acknowledge items first")

// Queue holds items until their clients acknowledge them.
type Queue struct {
	now      func() time.Time
	capacity int

	mu    sync.Mutex
	items []Item
}

// NewQueue returns an empty queue for at most capacity items, or the default.
func NewQueue(now func() time.Time, capacity int) *Queue {
	if capacity < 1 {
		capacity = DefaultCapacity
	}
	return &Queue{now: now, capacity: capacity}
}

// Enqueue adds an item. An id that its client has queued already is
// overwritten in its place.
func (q *Queue) Enqueue(raw any) (Item, error) {
	item, err := NewItem(raw, q.now())
	if err != nil {
		return Item{}, err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	at := slices.IndexFunc(q.items, func(other Item) bool { return other.QueueID == item.QueueID })
	switch {
	case at >= 0 && q.items[at].ClientID != item.ClientID:
		return Item{}, fmt.Errorf("%w (%s)", ErrForeign, item.QueueID)
	case at >= 0:
		q.items[at] = item
	case len(q.items) >= q.capacity:
		return Item{}, ErrFull
	default:
		q.items = append(q.items, item)
	}
	return item, nil
}

// Pending lists a client's items, oldest first, at most limit of them (0 is
// the default); sessions, if given, restrict them.
func (q *Queue) Pending(clientID string, limit int, sessions ...string) []Item {
	if limit < 1 {
		limit = DefaultPending
	}
	clientID = slug(clientID)
	q.mu.Lock()
	defer q.mu.Unlock()
	pending := []Item{}
	for _, item := range q.items {
		if item.ClientID != clientID || (len(sessions) > 0 && !slices.Contains(sessions, item.SessionID)) {
			continue
		}
		if pending = append(pending, item); len(pending) == limit {
			break
		}
	}
	return pending
}

// Ack removes items of a client and returns how many there were; items of other
// clients stay and do not count.
func (q *Queue) Ack(clientID string, queueIDs ...string) int {
	clientID = slug(clientID)
	q.mu.Lock()
	defer q.mu.Unlock()
	before := len(q.items)
	q.items = slices.DeleteFunc(q.items, func(item Item) bool {
		return item.ClientID == clientID && slices.Contains(queueIDs, item.QueueID)
	})
	return before - len(q.items)
}
