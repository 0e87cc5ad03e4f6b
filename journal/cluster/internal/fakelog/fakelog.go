// Package fakelog implements the port of the cluster engine in memory, for unit tests.
// Its logs can be damaged.
package fakelog

import (
	"context"
	"crypto/rand"
	"errors"
	"maps"
	"slices"
	"sync"

	"github.com/parley-hub/parley/journal/cluster/port"
)

// Logs are the logs of one cluster.
type Logs struct {
	Epoch uint64

	mu     sync.Mutex
	shards []*stream
	hears  map[int]func([]byte)
	next   int
}

type stream struct {
	id    [16]byte
	first uint64
	slots [][]byte
	gone  bool
	tails map[int]func(port.Message)
}

// New returns empty logs.
func New(shards int) *Logs {
	l := &Logs{Epoch: 1, hears: map[int]func([]byte){}}
	for range shards {
		s := &stream{first: 1, tails: map[int]func(port.Message){}}
		_, _ = rand.Read(s.id[:])
		l.shards = append(l.shards, s)
	}
	return l
}

// Messages returns all messages of a shard, the first one at index 0.
func (l *Logs) Messages(shard int) [][]byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.shards[shard].slots)
}

// Set replaces a message.
func (l *Logs) Set(shard int, seq uint64, data []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.shards[shard].slots[seq-1] = data
}

// Put stores a message without an expected last sequence.
func (l *Logs) Put(shard int, data []byte) {
	_ = l.store(shard, data, func(*stream) error { return nil })
}

// Truncate removes all messages after last.
func (l *Logs) Truncate(shard int, last uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.shards[shard].slots = l.shards[shard].slots[:last]
}

// Purge removes all messages before first.
func (l *Logs) Purge(shard int, first uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.shards[shard].first = first
}

// Remove removes the log, or brings it back.
func (l *Logs) Remove(shard int, gone bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.shards[shard].gone = gone
}

// Replace replaces the log by a new one with the same name and messages.
func (l *Logs) Replace(shard int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, _ = rand.Read(l.shards[shard].id[:])
}

// store stores a message unless may returns an error.
func (l *Logs) store(shard int, data []byte, may func(*stream) error) error {
	l.mu.Lock()
	s := l.shards[shard]
	if err := may(s); err != nil {
		l.mu.Unlock()
		return err
	}
	s.slots = append(s.slots, slices.Clone(data))
	m := port.Message{Seq: uint64(len(s.slots)), Data: s.slots[len(s.slots)-1]}
	tails := slices.Collect(maps.Values(s.tails))
	l.mu.Unlock()
	for _, push := range tails {
		push(m)
	}
	return nil
}

// Client is one connection.
type Client struct{ *Logs }

var _ port.Log = (*Client)(nil)

// Connect returns a connection.
func (l *Logs) Connect() *Client { return &Client{Logs: l} }

var errLost = errors.New("no answer")

// Append implements port.Log.
func (c *Client) Append(ctx context.Context, shard int, after uint64, data []byte) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if len(data) > c.MaxBytes() {
		return port.ErrTooLarge
	}
	return c.store(shard, data, func(s *stream) error {
		switch {
		case s.gone:
			return errLost
		case uint64(len(s.slots)) != after:
			return port.ErrRefused
		}
		return nil
	})
}

// Read implements port.Log.
func (c *Client) Read(_ context.Context, shard int, from uint64) (got []port.Message, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.shards[shard]
	if s.gone {
		return nil, errLost
	}
	for seq := max(from, s.first); seq <= uint64(len(s.slots)) && len(got) < 16; seq++ {
		got = append(got, port.Message{Seq: seq, Data: slices.Clone(s.slots[seq-1])})
	}
	return got, nil
}

// Tail implements port.Log.
func (c *Client) Tail(shard int, push func(port.Message)) (stop func(), err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.next++
	id := c.next
	c.shards[shard].tails[id] = push
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.shards[shard].tails, id)
	}, nil
}

// State implements port.Log.
func (c *Client) State(_ context.Context, shard int) (port.State, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.shards[shard]
	if s.gone {
		return port.State{}, port.ErrNoLog
	}
	return port.State{ID: s.id, Epoch: c.Epoch, Shards: len(c.shards), First: s.first, Last: uint64(len(s.slots))}, nil
}

// MaxBytes implements port.Log.
func (c *Client) MaxBytes() int { return 1 << 20 }

// Beat implements port.Log.
func (c *Client) Beat(data []byte) error {
	c.mu.Lock()
	hears := slices.Collect(maps.Values(c.hears))
	c.mu.Unlock()
	for _, hear := range hears {
		hear(data)
	}
	return nil
}

// Beats implements port.Log.
func (c *Client) Beats(hear func([]byte)) (stop func(), err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.next++
	id := c.next
	c.hears[id] = hear
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.hears, id)
	}, nil
}

// Elsewhere implements port.Log.
func (c *Client) Elsewhere(int) {}

// Close implements port.Log.
func (c *Client) Close() {}
