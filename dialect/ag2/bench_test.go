package ag2_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/gobwas/ws"

	"github.com/parley-hub/parley/journal"
	"github.com/parley-hub/parley/journal/disk"
)

// BenchmarkPipelined posts over 16 connections with 64 in flight on each.
func BenchmarkPipelined(b *testing.B) {
	b.Run("mem", func(b *testing.B) { pipelined(b, options{}) })
	b.Run("disk", func(b *testing.B) { pipelined(b, options{disk: true}) })
}

func pipelined(b *testing.B, o options) {
	r := newRig(b, o)
	const conns, inFlight = 16, 64
	type client struct {
		*raw
		message []byte
	}
	clients := make([]client, conns)
	for i := range clients {
		p := r.dial()
		from, to := p.register(fmt.Sprintf("a%d", i)), p.register(fmt.Sprintf("b%d", i))
		ch := p.open("conversation", from, map[string]*peer{to: p})
		p.call("unregister", object{"agent_id": to}, nil)
		c := r.raw()
		hello := fmt.Sprintf(`{"kind":"hello","name":"a%d"}`, i)
		c.write(frame(true, opText, []byte(hello)))
		_, _, _ = c.read()
		post := fmt.Sprintf(`{"kind":"request","request_id":"18a0c4000000000000000000000000aa","op":"post_envelope","params":{"envelope":{"channel_id":%q,"sender_id":%q,"audience":null,"event_type":"ag2.msg.text","event_data":{"text":"hello there, this is an ordinary line of chat"},"envelope_id":"","task_id":null,"causation_id":null,"trace_id":null,"priority":"normal","depth":0,"idempotency_key":null,"created_at":"","ttl_seconds":null}}}`, ch, from)
		clients[i] = client{c, frame(true, opText, []byte(post))}
	}
	var left atomic.Int64
	left.Store(int64(b.N))
	b.ResetTimer()
	var group sync.WaitGroup
	for _, c := range clients {
		group.Go(func() {
			window := make(chan struct{}, inFlight)
			done := make(chan struct{})
			go func() {
				defer close(done)
				skipFrames(c.in, window)
			}()
			w := bufio.NewWriterSize(c.conn, 32<<10)
			for left.Add(-1) >= 0 {
				select {
				case window <- struct{}{}:
				default:
					_ = w.Flush()
					window <- struct{}{}
				}
				_, _ = w.Write(c.message)
			}
			_ = w.Flush()
			for range inFlight {
				window <- struct{}{}
			}
			_ = c.conn.Close()
			<-done
		})
	}
	group.Wait()
	b.StopTimer()
	s := r.server.Stats()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "posts/s")
	b.ReportMetric(float64(s.Writes)/float64(b.N), "writes/post")
}

// skipFrames takes one slot of the window for every frame.
func skipFrames(in *bufio.Reader, window chan struct{}) {
	for {
		h, err := ws.ReadHeader(in)
		if err != nil {
			return
		}
		if _, err := in.Discard(int(h.Length)); err != nil {
			return
		}
		if window != nil {
			<-window
		}
	}
}

// BenchmarkFanOut posts to a channel with 50 readers, each on its own
// connection.
func BenchmarkFanOut(b *testing.B) {
	const readers, inFlight = 50, 64
	r := newRig(b, options{})
	poster := r.dial()
	from := poster.register("poster")
	invitees := map[string]*peer{}
	for i := range readers {
		invitees[poster.register(fmt.Sprintf("r%d", i))] = poster
	}
	ch := poster.open("discussion", from, invitees)
	for i := range readers {
		poster.call("set_rule", object{"agent_id": idOf(r, fmt.Sprintf("r%d", i)), "rule": object{"limits": object{"inbox": object{"max_pending": 0}}}}, nil)
	}
	var received atomic.Int64
	var group sync.WaitGroup
	conns := make([]*raw, readers)
	for i := range readers {
		c := r.raw()
		c.in = bufio.NewReaderSize(c.conn, 64<<10)
		conns[i] = c
		c.write(frame(true, opText, fmt.Appendf(nil, `{"kind":"hello","name":"r%d"}`, i)))
		_, _, _ = c.read()
		group.Go(func() {
			for {
				h, err := ws.ReadHeader(c.in)
				if err != nil {
					return
				}
				if _, err := io.CopyN(io.Discard, c.in, h.Length); err != nil {
					return
				}
				received.Add(1)
			}
		})
	}
	c := r.raw()
	c.write(frame(true, opText, []byte(`{"kind":"hello","name":"poster"}`)))
	_, _, _ = c.read()
	post := frame(true, opText, fmt.Appendf(nil, `{"kind":"request","request_id":"18a0c4000000000000000000000000aa","op":"post_envelope","params":{"envelope":{"channel_id":%q,"sender_id":%q,"audience":null,"event_type":"app.note","event_data":{"text":"hello there, this is an ordinary line of chat"}}}}`, ch, from))
	window := make(chan struct{}, inFlight)
	go skipFrames(c.in, window)
	before := r.server.Stats()
	b.ResetTimer()
	w := bufio.NewWriterSize(c.conn, 32<<10)
	for range b.N {
		select {
		case window <- struct{}{}:
		default:
			_ = w.Flush()
			window <- struct{}{}
		}
		_, _ = w.Write(post)
	}
	_ = w.Flush()
	for received.Load() < int64(b.N*readers) {
		window <- struct{}{}
		<-window
	}
	b.StopTimer()
	after := r.server.Stats()
	b.ReportMetric(float64(b.N*readers)/b.Elapsed().Seconds(), "deliveries/s")
	b.ReportMetric(float64(after.Writes-before.Writes)/float64(b.N*readers), "writes/delivery")
	_ = c.conn.Close()
	for _, c := range conns {
		_ = c.conn.Close()
	}
	group.Wait()
}

func idOf(r *rig, name string) string {
	id, _ := r.hub.FindAgent(name)
	return id
}

// BenchmarkDelivery posts one at a time and waits until another connection has
// received it.
func BenchmarkDelivery(b *testing.B) {
	r := newRig(b, options{disk: true})
	p, q := r.dial(), r.dial()
	alice, bob := p.register("alice"), q.register("bob")
	q.call("set_rule", object{"agent_id": bob, "rule": object{"limits": object{"inbox": object{"max_pending": 0}}}}, nil)
	ch := p.open("conversation", alice, map[string]*peer{bob: q})
	post := fmt.Sprintf(`{"kind":"request","request_id":"1","op":"post_envelope","params":{"envelope":{"channel_id":%q,"sender_id":%q,"audience":null,"event_type":"ag2.msg.text","event_data":{"text":"hello there, this is an ordinary line of chat"}}}}`, ch, alice)
	for b.Loop() {
		p.send(post)
		q.recv()
		p.recv()
	}
}

// BenchmarkJournal is the lower bound: appends of one record of about an envelope's
// size, with as many outstanding as in BenchmarkPipelined.
func BenchmarkJournal(b *testing.B) {
	j, err := disk.Open(b.TempDir(), disk.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = j.Close() }()
	record := make([]byte, 250)
	window := make(chan *journal.Ticket, 16*64)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ticket := range window {
			if err := ticket.Wait(context.Background()); err != nil {
				b.Error(err)
			}
		}
	}()
	b.ResetTimer()
	for i := range b.N {
		log := journal.PartitionName{Tenant: "main", Partition: fmt.Sprint("channel/", i%16)}.In("history", "-")
		ticket, err := j.Append(context.Background(), journal.Batch{Appends: []journal.Append{{Log: log, Records: []journal.Record{{Data: record}}}}})
		if err != nil {
			b.Fatal(err)
		}
		window <- ticket
	}
	close(window)
	<-done
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "appends/s")
}
