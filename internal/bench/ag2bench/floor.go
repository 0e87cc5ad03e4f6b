package ag2bench

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"github.com/gobwas/ws"
	"github.com/gobwas/ws/wsutil"

	"github.com/parley-hub/parley/dialect/ag2/wire"
)

// What the floor's server does on each path.
const (
	echoPath   = "/echo"   // sends back what it gets
	answerPath = "/answer" // reads posts and answers them, and does nothing else
	readPath   = "/read"   // is written to by the loop
	loopPath   = "/loop"   // runs the loop
)

// loopOrder asks for writes to every reader, for a while.
type loopOrder struct {
	For     time.Duration `json:"for"`
	Bytes   int           `json:"bytes"`   // of each message
	Readers int           `json:"readers"` // that must have come
}

type loopDone struct {
	Messages int64  `json:"messages"` // to each reader
	Err      string `json:"err,omitempty"`
}

// ServeFloor runs a WebSocket server that does the least possible: it echoes, it
// answers posts without storing them, and a loop writes an encoded message to one
// connection after the other. It writes its address to out and serves until in
// ends.
func ServeFloor(ctx context.Context, in io.Reader, out io.Writer) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	f := &floor{conns: map[net.Conn]struct{}{}}
	f.arrived = sync.NewCond(&f.mu)
	f.group.Go(func() { f.accept(listener) })
	_, err = fmt.Fprintf(out, "{\"url\":\"ws://%s\"}\n", listener.Addr())
	if err == nil {
		_, err = io.Copy(io.Discard, in)
	}
	_ = listener.Close()
	f.close()
	f.group.Wait()
	return err
}

type floor struct {
	group sync.WaitGroup

	mu      sync.Mutex
	arrived *sync.Cond
	conns   map[net.Conn]struct{}
	readers []net.Conn
	closed  bool
}

func (f *floor) accept(listener net.Listener) {
	for {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		f.mu.Lock()
		f.conns[conn] = struct{}{}
		closed := f.closed
		f.mu.Unlock()
		if closed {
			_ = conn.Close()
			return
		}
		f.group.Go(func() { f.serve(conn) })
	}
}

func (f *floor) close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
	for conn := range f.conns {
		_ = conn.Close()
	}
	f.arrived.Broadcast()
}

// serve serves one connection until it ends.
func (f *floor) serve(conn net.Conn) {
	var path string
	upgrader := ws.Upgrader{OnRequest: func(uri []byte) error {
		path = string(uri)
		return nil
	}}
	_, err := upgrader.Upgrade(conn)
	if err == nil && path == readPath {
		f.mu.Lock()
		f.readers = append(f.readers, conn)
		f.arrived.Broadcast()
		f.mu.Unlock()
	}
	if err == nil && path == answerPath {
		err = answerPosts(conn)
	}
	for err == nil {
		var payload []byte
		if payload, err = wsutil.ReadClientText(conn); err != nil {
			break
		}
		switch path {
		case echoPath:
			_, err = conn.Write(ws.MustCompileFrame(ws.NewTextFrame(payload)))
		case loopPath:
			err = wsutil.WriteServerText(conn, f.run(payload))
		}
	}
	f.mu.Lock()
	delete(f.conns, conn)
	if path == readPath {
		f.readers = without(f.readers, conn)
	}
	f.mu.Unlock()
	_ = conn.Close()
}

// answerPosts decodes posts as the hub does and accepts each, with one write for all
// that arrived together.
func answerPosts(conn net.Conn) error {
	in := bufio.NewReaderSize(conn, busyBuffer)
	var out bytes.Buffer
	for {
		header, err := ws.ReadHeader(in)
		if err != nil {
			return err
		}
		if header.OpCode != ws.OpText || !header.Masked || header.Length > busyBuffer {
			return fmt.Errorf("%+v is not the frame of a post", header)
		}
		payload := make([]byte, header.Length)
		if _, err := io.ReadFull(in, payload); err != nil {
			return err
		}
		ws.Cipher(payload, header.Mask, 0)
		frame, err := wire.Decode(payload)
		if err != nil {
			return err
		}
		post, ok := frame.(*wire.Post)
		if !ok {
			return fmt.Errorf("a %T is not a post", frame)
		}
		_ = ws.WriteFrame(&out, ws.NewTextFrame(wire.AppendText(nil, post.ID, post.Envelope.Channel))) // to memory
		if in.Buffered() > 0 {
			continue
		}
		if _, err := conn.Write(out.Bytes()); err != nil {
			return err
		}
		out.Reset()
	}
}

func without(list []net.Conn, gone net.Conn) []net.Conn {
	kept := make([]net.Conn, 0, len(list))
	for _, c := range list {
		if c != gone {
			kept = append(kept, c)
		}
	}
	return kept
}

// run executes an order and reports the outcome.
func (f *floor) run(order []byte) []byte {
	var o loopOrder
	var done loopDone
	err := json.Unmarshal(order, &o)
	if err == nil {
		done.Messages, err = f.loop(o)
	}
	if err != nil {
		done.Err = err.Error()
	}
	answer, _ := json.Marshal(done) // of a number and a string
	return answer
}

func (f *floor) loop(o loopOrder) (n int64, err error) {
	f.mu.Lock()
	for len(f.readers) < o.Readers && !f.closed {
		f.arrived.Wait()
	}
	readers := f.readers
	f.mu.Unlock()
	if len(readers) != o.Readers {
		return 0, errors.New("the floor has other readers than it should")
	}
	frame := ws.MustCompileFrame(ws.NewTextFrame(bytes.Repeat([]byte{'x'}, o.Bytes)))
	for end := time.Now().Add(o.For); n == 0 || time.Now().Before(end); n++ {
		for _, conn := range readers {
			if _, err := conn.Write(frame); err != nil {
				return n, err
			}
		}
	}
	return n, nil
}
