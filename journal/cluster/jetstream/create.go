package jetstream

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// What a stream's metadata says.
const (
	metaID     = "parley-id"
	metaEpoch  = "parley-epoch"
	metaShards = "parley-shards"
)

// Create makes the streams of a cluster that has none. A stream that exists is
// refused.
func (l *Log) Create(ctx context.Context, shards, replicas int, epoch uint64) error {
	for shard := range shards {
		id := make([]byte, 16)
		_, _ = rand.Read(id)
		_, err := l.js.CreateStream(ctx, l.config(shard, shards, replicas, epoch, hex.EncodeToString(id)))
		if errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) {
			return fmt.Errorf("stream %s exists already: the cluster %q was made before", l.stream(shard), l.opts.Cluster)
		}
		if err != nil {
			return fmt.Errorf("making stream %s with %d replicas: %w", l.stream(shard), replicas, err)
		}
	}
	return nil
}

// Replace deletes the streams of a cluster, with all that is in them, and makes
// them anew in a later epoch. What the copies of the nodes have is all that is
// left then.
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
		Duplicates:  100 * time.Millisecond, // the least
		RePublish:   &jetstream.RePublish{Source: l.subject("log." + n), Destination: l.subject("tail." + n)},
		Metadata:    map[string]string{metaID: id, metaEpoch: strconv.FormatUint(epoch, 10), metaShards: strconv.Itoa(shards)},
	}
}

// checkStream refuses a stream that was changed so that it may lose or hide
// messages.
func checkStream(c jetstream.StreamConfig) error {
	wrong := func(setting string, is, want any) error {
		return fmt.Errorf("stream %s has %s %v; set it to %v", c.Name, setting, is, want)
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
	case c.RePublish == nil:
		return wrong("republish", "off", "what `parley cluster init` gave it")
	}
	return nil
}
