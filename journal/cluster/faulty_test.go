package cluster_test

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/parley-hub/parley/journal/cluster/port"
)

// verdict is what happens to a published message.
type verdict int

const (
	store        verdict = iota
	refuse               // it is not stored, and refused
	storeRefused         // it is stored, and refused: as by a leader because of its own proposal
	storeUnheard         // it is stored, and the answer is lost
	lose                 // it is not stored, and there is no answer
)

// faulty is a connection with faults. Its hooks are set before it is used.
type faulty struct {
	port.Log
	most     atomic.Int64                    // maximum bytes of a message; 0: that of the servers
	onAppend func(data []byte) verdict       // nil: store
	onRead   func(ctx context.Context) error // nil: none
	hidden   atomic.Uint64                   // message that reads do not find; 0: none
	deaf     bool                            // nothing is pushed, and no other node is heard
	poor     atomic.Bool                     // its servers report that they have no quorum
	silent   atomic.Bool                     // its servers do not answer what the state of the log is
}

// eachLog runs a test on a log in memory, and on a log of real servers.
func eachLog(t *testing.T, test func(t *testing.T, connect func() *faulty)) {
	t.Helper()
	for kind, b := range map[string]backend{"fake": &fakeServers{}, "servers": natsServers{}} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			name := b.create(t, 1, 1)
			test(t, func() *faulty { return &faulty{Log: b.connect(t, name)} })
		})
	}
}

// messages returns all messages of a log, the first one at index 0. It closes the
// connection.
func (f *faulty) messages(t testing.TB) [][]byte {
	t.Helper()
	defer f.Close()
	state, err := f.State(context.Background(), 0)
	if err != nil {
		t.Fatal(err)
	}
	return storedIn(t, f.Log, state.Last)
}

func (f *faulty) Append(ctx context.Context, shard int, after uint64, data []byte) error {
	if len(data) > f.MaxBytes() {
		return port.ErrTooLarge
	}
	v := store
	if f.onAppend != nil {
		v = f.onAppend(data)
	}
	switch v {
	case refuse:
		return port.ErrRefused
	case lose:
		return errGate
	}
	err := f.Log.Append(ctx, shard, after, data)
	switch {
	case err == nil && v == storeRefused:
		return port.ErrRefused
	case err == nil && v == storeUnheard:
		return errGate
	}
	return err
}

func (f *faulty) Read(ctx context.Context, shard int, from uint64) ([]port.Message, error) {
	if f.onRead != nil {
		if err := f.onRead(ctx); err != nil {
			return nil, err
		}
	}
	found, err := f.Log.Read(ctx, shard, from)
	return slices.DeleteFunc(found, func(m port.Message) bool { return m.Seq == f.hidden.Load() }), err
}

func (f *faulty) Tail(shard int, push func(port.Message)) (stop func(), err error) {
	if f.deaf {
		return func() {}, nil
	}
	return f.Log.Tail(shard, push)
}

func (f *faulty) Beats(hear func([]byte)) (stop func(), err error) {
	if f.deaf {
		return func() {}, nil
	}
	return f.Log.Beats(hear)
}

func (f *faulty) State(ctx context.Context, shard int) (port.State, error) {
	if f.silent.Load() {
		return port.State{}, errGate
	}
	state, err := f.Log.State(ctx, shard)
	state.NoQuorum = state.NoQuorum || f.poor.Load()
	return state, err
}

func (f *faulty) MaxBytes() int {
	if most := f.most.Load(); most > 0 {
		return int(most)
	}
	return f.Log.MaxBytes()
}

// held returns a hook that makes reads wait until the channel is closed.
func held(until <-chan struct{}) func(context.Context) error {
	return func(ctx context.Context) error {
		select {
		case <-until:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
