package registry

import (
	"strings"
	"sync"
	"time"

	"github.com/parley-hub/parley/identity"
)

// Places counts the envelopes that an identity has received and not answered, and
// how fast it posts. It is kept in memory only.
type Places struct {
	mu       sync.Mutex
	waiting  map[string][]place // by channel, oldest first
	pending  int64              // places that are taken
	reserved int64              // admitted, but not yet delivered
	senders  map[string]int64   // places, taken or reserved, by sender
	used     bool               // any envelope ever arrived
	bucket   identity.Bucket
	rate     identity.Rate
}

// place is one envelope that was delivered to an identity.
type place struct{ id, sender string }

const (
	// fairShare divides an inbox: each sender may use 1/fairShare of its places even
	// if others have filled it. An inbox of fewer places has no such shares.
	fairShare = 8
	// maxPlaces bounds the list of an identity whose arbiter sets no limit.
	maxPlaces = 1 << 16
)

// Depth returns how many places are taken, as counted for one sender. For a sender
// that has not used its fair share, the result is at most the capacity minus one
// until twice the capacity is taken.
func (i *Places) Depth(sender string, capacity int64) int64 {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.depthFor(sender, capacity)
}

func (i *Places) depthFor(sender string, capacity int64) int64 {
	taken := i.pending + i.reserved
	if taken >= capacity && taken < 2*capacity && i.senders[sender] < capacity/fairShare {
		return capacity - 1
	}
	return taken
}

// Reserve takes a place for an envelope that is about to be admitted, and returns
// how many were taken before, as Depth does.
func (i *Places) Reserve(sender string, capacity int64) int64 {
	i.mu.Lock()
	defer i.mu.Unlock()
	taken := i.depthFor(sender, capacity)
	i.reserved++
	i.count(sender, 1)
	return taken
}

// Release gives a reserved place back.
func (i *Places) Release(sender string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.reserved = max(i.reserved-1, 0)
	i.count(sender, -1)
}

func (i *Places) count(sender string, n int64) {
	if i.senders == nil {
		i.senders = map[string]int64{}
	}
	if left := i.senders[sender] + n; left > 0 {
		i.senders[sender] = left
	} else {
		delete(i.senders, sender)
	}
}

// Arrived takes a place for an envelope, unless one was reserved, and returns
// how many are taken.
func (i *Places) Arrived(channelID, id, sender string, reserved bool) int64 {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.used = true
	if reserved {
		i.reserved--
	} else {
		i.count(sender, 1)
	}
	if i.pending >= maxPlaces {
		i.count(sender, -1)
		return i.pending
	}
	if i.waiting == nil {
		i.waiting = map[string][]place{}
	}
	i.waiting[channelID] = append(i.waiting[channelID], place{id, sender})
	i.pending++
	return i.pending
}

// Answered frees a place when the identity speaks in a channel: the oldest place of
// that channel, or else the oldest of all.
func (i *Places) Answered(channelID string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if len(i.waiting[channelID]) == 0 {
		channelID = i.oldest()
	}
	i.free(channelID, min(1, len(i.waiting[channelID])))
}

func (i *Places) oldest() (channelID string) {
	for id, list := range i.waiting {
		if channelID == "" || strings.Compare(list[0].id, i.waiting[channelID][0].id) < 0 {
			channelID = id
		}
	}
	return channelID
}

// Acked frees the places of a channel up to an envelope, when the identity has read
// that far.
func (i *Places) Acked(channelID, id string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	list, n := i.waiting[channelID], 0
	for n < len(list) && list[n].id <= id {
		n++
	}
	i.free(channelID, n)
}

// Ended frees the places of a channel that has ended.
func (i *Places) Ended(channelID string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.free(channelID, len(i.waiting[channelID]))
}

// free frees the oldest n places of a channel.
func (i *Places) free(channelID string, n int) {
	list := i.waiting[channelID]
	for _, p := range list[:n] {
		i.count(p.sender, -1)
	}
	i.pending -= int64(n)
	switch {
	case n == 0:
	case n == len(list):
		delete(i.waiting, channelID)
	default:
		i.waiting[channelID] = list[n:]
	}
}

// Taken returns how many places are taken.
func (i *Places) Taken() int64 {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.pending
}

// Take takes a token from the rate's bucket; a changed rate starts with a full
// bucket.
func (i *Places) Take(rate identity.Rate, now time.Time) (ok bool, wait time.Duration) {
	if rate.PerMinute <= 0 {
		return true, 0
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.rate != rate {
		i.rate, i.bucket = rate, identity.NewBucket(rate)
	}
	return i.bucket.Take(now)
}

// Seen returns how many places are taken, and whether any envelope ever arrived.
func (i *Places) Seen() (pending int64, used bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.pending, i.used
}
