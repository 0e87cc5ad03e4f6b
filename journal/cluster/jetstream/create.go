package jetstream

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/parley-hub/parley/journal/cluster/port"
)

// Keys of a stream's metadata.
const (
	metaID     = "parley-id"
	metaEpoch  = "parley-epoch"
	metaShards = "parley-shards"
	metaCopies = "parley-replicas"
)

// Create makes the streams of a cluster that has none. It returns an error if a stream
// exists. If a stream cannot be made, Create removes those that it made.
func (l *Log) Create(ctx context.Context, shards, replicas int, epoch uint64) error {
	var made []jetstream.StreamConfig
	for shard := range shards {
		id := make([]byte, 16)
		_, _ = rand.Read(id)
		c := l.config(shard, shards, replicas, epoch, hex.EncodeToString(id))
		made = append(made, c)
		err := l.create(ctx, c)
		if errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) {
			err = fmt.Errorf("stream %s exists already: the cluster %q was made before", c.Name, l.opts.Cluster)
		} else if err != nil {
			err = fmt.Errorf("making stream %s with %d replicas: %w", c.Name, replicas, err)
		}
		if err != nil {
			l.remove(context.WithoutCancel(ctx), made)
			return err
		}
	}
	return nil
}

// createTry bounds one attempt to make a stream, and createPause is the pause between
// two attempts.
const (
	createTry   = 5 * time.Second
	createPause = 200 * time.Millisecond
)

// create makes a stream. Servers that have just started do not answer, or answer that
// there are too few of them, until they have found each other; create retries until
// ctx ends. Making the same stream twice is idempotent.
func (l *Log) create(ctx context.Context, c jetstream.StreamConfig) error {
	for {
		once, cancel := context.WithTimeout(ctx, createTry)
		_, err := l.js.CreateStream(once, c)
		cancel()
		if err == nil || ctx.Err() != nil || !passing(err) {
			return err
		}
		select {
		case <-time.After(createPause):
		case <-ctx.Done():
			return err
		}
	}
}

// noPeers is the error code of a leader that does not know enough servers yet.
const noPeers jetstream.ErrorCode = 10005

// passing reports whether an error is temporary.
func passing(err error) bool {
	var api *jetstream.APIError
	if errors.As(err, &api) {
		return api.Code == http.StatusServiceUnavailable || api.ErrorCode == noPeers
	}
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, nats.ErrNoResponders) || errors.Is(err, nats.ErrTimeout)
}

// remove removes the streams that one call of Create made, as far as possible. It keeps
// a stream of the same name that another call made.
func (l *Log) remove(ctx context.Context, made []jetstream.StreamConfig) {
	ctx, cancel := context.WithTimeout(ctx, createTry)
	defer cancel()
	for _, c := range made {
		s, err := l.js.Stream(ctx, c.Name)
		if err == nil && s.CachedInfo().Config.Metadata[metaID] == c.Metadata[metaID] {
			_ = l.js.DeleteStream(ctx, c.Name)
		}
	}
}

// Replace deletes the streams of a cluster with all their messages, and makes new
// ones in a later epoch. Afterwards the data is only in the copies of the nodes.
func (l *Log) Replace(ctx context.Context, shards, replicas int, epoch uint64) error {
	for shard := range shards {
		if err := l.js.DeleteStream(ctx, l.stream(shard)); err != nil && !errors.Is(err, jetstream.ErrStreamNotFound) {
			return fmt.Errorf("deleting stream %s: %w", l.stream(shard), err)
		}
	}
	return l.Create(ctx, shards, replicas, epoch)
}

func (l *Log) config(shard, shards, replicas int, epoch uint64, id string) jetstream.StreamConfig {
	n := strconv.Itoa(shard)
	return jetstream.StreamConfig{
		Name:        l.stream(shard),
		Description: "write-ahead log of shard " + n + " of the Parley cluster " + l.opts.Cluster,
		Subjects:    []string{l.subject("log." + n)},
		Storage:     jetstream.FileStorage,
		Replicas:    replicas,
		Retention:   jetstream.LimitsPolicy,
		Discard:     jetstream.DiscardNew,
		DenyDelete:  true,
		AllowDirect: true,
		Duplicates:  100 * time.Millisecond, // the minimum
		RePublish:   l.republish(shard),
		Metadata:    map[string]string{metaID: id, metaEpoch: strconv.FormatUint(epoch, 10), metaShards: strconv.Itoa(shards), metaCopies: strconv.Itoa(replicas)},
	}
}

// republish returns the setting that sends new messages of a shard to its followers.
func (l *Log) republish(shard int) *jetstream.RePublish {
	n := strconv.Itoa(shard)
	return &jetstream.RePublish{Source: l.subject("log." + n), Destination: l.subject("tail." + n)}
}

// unfitError is a port.ErrUnfit with its own text.
type unfitError string

func (e unfitError) Error() string        { return string(e) }
func (e unfitError) Is(target error) bool { return target == port.ErrUnfit }

// checkStream returns an error if a stream was changed so that it may lose, refuse or
// hide messages.
func (l *Log) checkStream(shard int, c jetstream.StreamConfig) error {
	wrong := func(setting string, is, want any) error {
		return unfitError(fmt.Sprintf("stream %s has %s %v; set it to %v", c.Name, setting, is, want))
	}
	switch {
	case c.Storage != jetstream.FileStorage:
		return wrong("storage", c.Storage, jetstream.FileStorage)
	case c.Retention != jetstream.LimitsPolicy:
		return wrong("retention", c.Retention, jetstream.LimitsPolicy)
	case c.Discard != jetstream.DiscardNew:
		return wrong("discard", c.Discard, jetstream.DiscardNew)
	case c.MaxAge != 0:
		return wrong("max_age", c.MaxAge, 0)
	case c.MaxMsgs > 0:
		return wrong("max_msgs", c.MaxMsgs, -1)
	case c.MaxBytes > 0:
		return wrong("max_bytes", c.MaxBytes, -1)
	case c.MaxMsgsPerSubject > 0:
		return wrong("max_msgs_per_subject", c.MaxMsgsPerSubject, -1)
	case c.PersistMode != jetstream.DefaultPersistMode:
		return wrong("persist_mode", c.PersistMode, jetstream.DefaultPersistMode)
	case !c.AllowDirect:
		return wrong("allow_direct", false, true)
	case !c.DenyDelete:
		return wrong("deny_delete", false, true)
	case c.MaxMsgSize > 0:
		return wrong("max_msg_size", c.MaxMsgSize, -1)
	case !slices.Equal(c.Subjects, []string{l.subject("log." + strconv.Itoa(shard))}):
		return wrong("subjects", c.Subjects, l.subject("log."+strconv.Itoa(shard)))
	case c.RePublish == nil || *c.RePublish != *l.republish(shard):
		return wrong("republish", show(c.RePublish), show(l.republish(shard)))
	}
	if copies, err := strconv.Atoi(c.Metadata[metaCopies]); err == nil && c.Replicas < copies {
		return wrong("num_replicas", c.Replicas, copies)
	}
	return nil
}

func show(r *jetstream.RePublish) string {
	switch {
	case r == nil:
		return "off"
	case r.HeadersOnly:
		return fmt.Sprintf("%s to %s, headers only", r.Source, r.Destination)
	}
	return fmt.Sprintf("%s to %s", r.Source, r.Destination)
}
