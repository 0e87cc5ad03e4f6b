package jetstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/nats-io/nats.go"
)

// Copies are sent between nodes as messages that are acknowledged one by one, so that
// the slower side sets the pace. Every client with access to the cluster's subjects can
// fetch them.

const (
	copyChunk   = 256 << 10        // bytes in one message at most
	copyTimeout = 30 * time.Second // for each message
	statusEnd   = "Parley-End"     // header of the last message: "" or what went wrong
)

type copyRequest struct {
	Shard int    `json:"shard"`
	Inbox string `json:"inbox"`
}

// GiveCopies serves FetchCopy for a node until stop is called. It sends the output of
// write.
func (l *Log) GiveCopies(node string, write func(ctx context.Context, shard int, w io.Writer) error) (stop func(), err error) {
	ctx, cancel := context.WithCancel(context.Background())
	end, err := l.hear("copy."+subjectOf(node), func(m *nats.Msg) {
		var r copyRequest
		if json.Unmarshal(m.Data, &r) != nil || r.Inbox == "" {
			return
		}
		go l.give(ctx, r, write)
	})
	if err != nil {
		cancel()
		return nil, err
	}
	return func() { end(); cancel() }, nil
}

func (l *Log) give(ctx context.Context, r copyRequest, write func(context.Context, int, io.Writer) error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	to := &chunks{log: l, ctx: ctx, inbox: r.Inbox, size: min(copyChunk, l.MaxBytes())}
	err := write(ctx, r.Shard, to)
	if err == nil {
		err = to.flush()
	}
	if to.failed != nil {
		return // the receiver is gone
	}
	last := nats.NewMsg(r.Inbox)
	last.Header.Set(statusEnd, "whole")
	if err != nil {
		last.Header.Set(statusEnd, "failed: "+err.Error())
	}
	_, _ = l.nc.RequestMsgWithContext(ctx, last) // if this is lost, the receiver times out
}

// chunks is a writer that sends its input as messages.
type chunks struct {
	log      *Log
	ctx      context.Context //nolint:containedctx // of one transfer
	inbox    string
	size     int
	buffered []byte
	failed   error
}

func (c *chunks) Write(p []byte) (int, error) {
	written := len(p)
	for len(p) > 0 {
		n := min(c.size-len(c.buffered), len(p))
		c.buffered, p = append(c.buffered, p[:n]...), p[n:]
		if len(c.buffered) == c.size {
			if err := c.flush(); err != nil {
				return 0, err
			}
		}
	}
	return written, nil
}

func (c *chunks) flush() error {
	if len(c.buffered) == 0 || c.failed != nil {
		return c.failed
	}
	ctx, cancel := context.WithTimeout(c.ctx, copyTimeout)
	defer cancel()
	_, c.failed = c.log.nc.RequestWithContext(ctx, c.inbox, c.buffered)
	c.buffered = c.buffered[:0]
	return c.failed
}

// FetchCopy requests a node's copy of a shard. The caller must close the reader.
func (l *Log) FetchCopy(ctx context.Context, node string, shard int) (io.ReadCloser, error) {
	inbox := l.nc.NewRespInbox()
	sub, err := l.nc.SubscribeSync(inbox)
	if err != nil {
		return nil, err
	}
	request, err := json.Marshal(copyRequest{Shard: shard, Inbox: inbox})
	if err == nil {
		err = l.nc.Publish(l.subject("copy."+subjectOf(node)), request)
	}
	if err != nil {
		return nil, errors.Join(err, sub.Unsubscribe())
	}
	return &fetched{ctx: ctx, sub: sub, node: node}, nil
}

// fetched reads the messages of a copy.
type fetched struct {
	ctx  context.Context //nolint:containedctx // of one transfer
	sub  *nats.Subscription
	node string
	left []byte
	end  error
}

func (f *fetched) Read(p []byte) (int, error) {
	for len(f.left) == 0 {
		if f.end != nil {
			return 0, f.end
		}
		f.next()
	}
	n := copy(p, f.left)
	f.left = f.left[n:]
	return n, nil
}

func (f *fetched) next() {
	ctx, cancel := context.WithTimeout(f.ctx, copyTimeout)
	defer cancel()
	m, err := f.sub.NextMsgWithContext(ctx)
	if err == nil {
		err = m.Respond(nil)
	}
	if err != nil {
		f.end = fmt.Errorf("node %s stopped sending its copy: %w", f.node, err)
		return
	}
	switch status := m.Header.Get(statusEnd); status {
	case "":
		f.left = m.Data
	case "whole":
		f.end = io.EOF
	default:
		f.end = fmt.Errorf("node %s: %.500s", f.node, status)
	}
}

// Close ends the transfer and discards the rest.
func (f *fetched) Close() error { return f.sub.Unsubscribe() }

// subjectOf encodes a node's name as one token of a subject.
func subjectOf(node string) string { return fmt.Sprintf("%x", node) }
