package jetstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/parley-hub/parley/journal/cluster/port"
)

// Bounds of one batched get.
const (
	readMessages = 256
	readBytes    = 4 << 20
)

// get is the request of a batched direct get, which any replica answers.
type get struct {
	Seq      uint64 `json:"seq"`
	Batch    int    `json:"batch"`
	MaxBytes int    `json:"max_bytes"`
}

// Read implements port.Log.
func (l *Log) Read(ctx context.Context, shard int, from uint64) ([]port.Message, error) {
	ctx, cancel := context.WithTimeout(ctx, ask)
	defer cancel()
	request, err := json.Marshal(get{Seq: from, Batch: readMessages, MaxBytes: readBytes})
	if err != nil {
		return nil, err
	}
	inbox := l.nc.NewRespInbox()
	sub, err := l.nc.SubscribeSync(inbox)
	if err != nil {
		return nil, err
	}
	defer sub.Unsubscribe() //nolint:errcheck // the connection is gone then
	if err := l.nc.PublishRequest("$JS.API.DIRECT.GET."+l.stream(shard), inbox, request); err != nil {
		return nil, err
	}
	var got []port.Message
	for {
		m, err := sub.NextMsgWithContext(ctx)
		if err != nil {
			if len(got) > 0 && errors.Is(err, context.DeadlineExceeded) {
				return got, nil // the server that answered died; the messages received are valid
			}
			return nil, fmt.Errorf("reading stream %s from %d: %w", l.stream(shard), from, err)
		}
		switch status := m.Header.Get("Status"); status {
		case "":
		case "204", "404": // 204: end of the batch; 404: no message
			return got, nil
		case "503":
			return nil, nats.ErrNoResponders
		default:
			return nil, fmt.Errorf("reading stream %s from %d: status %s %s", l.stream(shard), from, status, m.Header.Get("Description"))
		}
		seq, err := strconv.ParseUint(m.Header.Get(jetstream.SequenceHeader), 10, 64)
		if err != nil {
			return nil, fmt.Errorf("reading stream %s from %d: a message without its sequence", l.stream(shard), from)
		}
		got = append(got, port.Message{Seq: seq, Data: m.Data})
	}
}
