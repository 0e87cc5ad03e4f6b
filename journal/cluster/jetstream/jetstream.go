// Package jetstream implements the port of the cluster engine with NATS JetStream:
// one stream for each shard, published to at an exact sequence, followed by
// republished messages, read by batched direct gets. It uses no consumers: creating
// one needs the meta leader, and on a damaged replica a consumer silently skips
// messages.
package jetstream

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/parley-hub/parley/journal/cluster/port"
)

// Options configure a connection.
type Options struct {
	URL     string // one or more, separated by commas
	Cluster string // name of the cluster, part of all names of streams and subjects
	NATS    []nats.Option
}

// headerRoom is the maximum size of a published message besides its data.
const headerRoom = 512

// ask bounds one request to the servers.
const ask = 2 * time.Second

// Log is a connection to the streams of a cluster.
type Log struct {
	opts Options
	nc   *nats.Conn
	js   jetstream.JetStream

	mu      sync.Mutex
	looking bool   // a search for a better server is running
	prefer  string // the server to connect to next
	closed  bool
	looks   sync.WaitGroup
}

var _ port.Log = (*Log)(nil)

// Connect connects to the servers. A lost connection is restored automatically.
func Connect(opts Options) (*Log, error) {
	if err := checkName(opts.Cluster); err != nil {
		return nil, err
	}
	l := &Log{opts: opts}
	settings := append([]nats.Option{
		nats.Name("parley"), nats.MaxReconnects(-1), nats.ReconnectWait(100 * time.Millisecond),
		nats.ReconnectBufSize(-1), // what cannot be sent now is not sent later
		nats.PingInterval(time.Second), nats.MaxPingsOutstanding(2), nats.ReconnectToServer(l.choose),
		nats.IgnoreAuthErrorAbort(), // a user that is refused for a while must not end the connection for good
	}, opts.NATS...)
	nc, err := nats.Connect(opts.URL, settings...)
	if err != nil {
		return nil, fmt.Errorf("connecting to NATS: %w", err) // the URL may have a password
	}
	js, err := jetstream.New(nc)
	if err != nil {
		nc.Close()
		return nil, err
	}
	l.nc, l.js = nc, js
	return l, nil
}

func checkName(name string) error {
	ok := name != "" && len(name) <= 32
	for _, c := range name {
		ok = ok && (c == '-' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z')
	}
	if !ok {
		return fmt.Errorf("cluster name %q: use 1 to 32 of a-z, 0-9 and -", name)
	}
	return nil
}

func (l *Log) stream(shard int) string { return fmt.Sprintf("PARLEY_%s_%d", l.opts.Cluster, shard) }
func (l *Log) subject(of string) string {
	return "parley." + l.opts.Cluster + "." + of
}

// Append implements port.Log.
func (l *Log) Append(ctx context.Context, shard int, after uint64, data []byte) error {
	ctx, cancel := context.WithTimeout(ctx, ask)
	defer cancel()
	msg := &nats.Msg{Subject: l.subject("log." + strconv.Itoa(shard)), Data: data}
	ack, err := l.js.PublishMsg(ctx, msg, jetstream.WithExpectLastSequence(after),
		jetstream.WithExpectStream(l.stream(shard)), jetstream.WithRetryAttempts(0))
	var api *jetstream.APIError
	switch {
	case errors.As(err, &api) && api.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequence:
		return fmt.Errorf("%w: %w", port.ErrRefused, err)
	case errors.Is(err, nats.ErrMaxPayload):
		return fmt.Errorf("%w: %w", port.ErrTooLarge, err)
	case err != nil:
		return err
	case ack.Sequence != after+1 || ack.Duplicate:
		return fmt.Errorf("stream %s stored at %d what was to follow %d", l.stream(shard), ack.Sequence, after)
	}
	return nil
}

// State implements port.Log.
func (l *Log) State(ctx context.Context, shard int) (port.State, error) {
	ctx, cancel := context.WithTimeout(ctx, ask)
	defer cancel()
	s, err := l.js.Stream(ctx, l.stream(shard))
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return port.State{}, fmt.Errorf("stream %s: %w", l.stream(shard), port.ErrNoLog)
	}
	if err != nil {
		return port.State{}, l.explained(err)
	}
	info := s.CachedInfo()
	if err := l.checkStream(shard, info.Config); err != nil {
		return port.State{}, err
	}
	state := port.State{First: info.State.FirstSeq, Last: info.State.LastSeq}
	state.NoQuorum = info.Cluster != nil && info.Cluster.Leader == ""
	id, err := hex.DecodeString(info.Config.Metadata[metaID])
	if err != nil || copy(state.ID[:], id) != len(state.ID) {
		return port.State{}, fmt.Errorf("stream %s was not made by `parley cluster init`", l.stream(shard))
	}
	if state.Epoch, err = strconv.ParseUint(info.Config.Metadata[metaEpoch], 10, 64); err == nil {
		state.Shards, err = strconv.Atoi(info.Config.Metadata[metaShards])
	}
	if err != nil {
		return port.State{}, fmt.Errorf("stream %s was not made by `parley cluster init`: %w", l.stream(shard), err)
	}
	return state, nil
}

// explained adds why there is no connection to an error of a request.
func (l *Log) explained(err error) error {
	if l.nc.IsConnected() {
		return err
	}
	if why := l.nc.LastError(); why != nil {
		return fmt.Errorf("there is no connection to a NATS server: %w", why)
	}
	return fmt.Errorf("there is no connection to a NATS server: %w", err)
}

// Tail implements port.Log.
func (l *Log) Tail(shard int, push func(port.Message)) (stop func(), err error) {
	return l.hear("tail."+strconv.Itoa(shard), func(m *nats.Msg) {
		if seq, err := strconv.ParseUint(m.Header.Get(jetstream.SequenceHeader), 10, 64); err == nil {
			push(port.Message{Seq: seq, Data: m.Data})
		}
	})
}

// Beat implements port.Log.
func (l *Log) Beat(data []byte) error { return l.nc.Publish(l.subject("beat"), data) }

// Beats implements port.Log.
func (l *Log) Beats(hear func([]byte)) (stop func(), err error) {
	return l.hear("beat", func(m *nats.Msg) { hear(m.Data) })
}

func (l *Log) hear(of string, each nats.MsgHandler) (stop func(), err error) {
	sub, err := l.nc.Subscribe(l.subject(of), each)
	if err != nil {
		return nil, err
	}
	if err := l.nc.FlushTimeout(ask); err != nil {
		_ = sub.Unsubscribe() // otherwise it would come back with the connection
		return nil, err
	}
	return func() { _ = sub.Unsubscribe() }, nil
}

// MaxBytes implements port.Log.
func (l *Log) MaxBytes() int { return int(l.nc.MaxPayload()) - headerRoom }

// Server returns the name of the connected server, or "" if there is none.
func (l *Log) Server() string { return l.nc.ConnectedServerName() }

// Close implements port.Log.
func (l *Log) Close() {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	l.nc.Close()
	l.looks.Wait()
}
