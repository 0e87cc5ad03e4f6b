package siegebench

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gobwas/ws"
	"github.com/gobwas/ws/wsutil"

	v1 "github.com/parley-hub/parley/client/v1"
)

// siege is one round of hostile clients against one server. What they do does
// not depend on what they are answered, so that every server gets the same.
type siege struct {
	address, path string
	operator      *v1.Client // makes and revokes keys; nil: the server has none
	token         string     // of the hostile agent
	large         string     // a channel of it with a long log
	victim        string     // the id of an honest agent
	foreign       string     // a channel of honest agents
	round, scale  int
	lasts         time.Duration

	group sync.WaitGroup
	acts  atomic.Int64
}

// run starts every attack and waits for the end of all.
func (s *siege) run(ctx context.Context) {
	for _, a := range attacks {
		for i := range max(1, a.clients/s.scale) {
			s.group.Go(func() { a.run(ctx, s, fmt.Sprintf("siege-%d-%s-%d", s.round, a.short, i)) })
		}
	}
	s.group.Wait()
}

// each does something so many times, spread over the siege, and then waits for
// its end.
func (s *siege) each(ctx context.Context, times int, act func(n int)) {
	times = max(1, times/s.scale)
	tick := time.NewTicker(max(s.lasts*3/4/time.Duration(times), time.Microsecond))
	defer tick.Stop()
	for n := range times {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		s.acts.Add(1)
		act(n)
	}
	<-ctx.Done()
}

// dial connects, where it can from an address of its own, so that hostile
// clients have the share of a stranger.
func (s *siege) dial(ctx context.Context) (net.Conn, error) {
	d := net.Dialer{Timeout: 2 * time.Second}
	if runtime.GOOS == "linux" {
		d.LocalAddr = &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}
	}
	c, err := d.DialContext(ctx, "tcp", s.address)
	if err != nil {
		return nil, err
	}
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetReadBuffer(16 << 10) // one that does not read is noticed soon
	}
	s.group.Go(func() { <-ctx.Done(); _ = c.Close() })
	return c, nil
}

// send writes a request and leaves its answer unread.
func (s *siege) send(ctx context.Context, request string) {
	c, err := s.dial(ctx)
	if err != nil {
		return
	}
	_ = c.SetWriteDeadline(time.Now().Add(2 * time.Second))
	_, _ = io.WriteString(c, request)
}

// ask writes a request and reads what comes back, up to a bound.
func (s *siege) ask(ctx context.Context, request string) {
	c, err := s.dial(ctx)
	if err != nil {
		return
	}
	_ = c.SetDeadline(time.Now().Add(2 * time.Second))
	if _, err := io.WriteString(c, request); err == nil {
		_, _ = io.CopyN(io.Discard, c, 64<<10)
	}
	_ = c.Close()
}

// get is a request with headers, each with its line end.
func (s *siege) get(path, headers string) string {
	return fmt.Sprintf("GET %s HTTP/1.1\r\nHost: %s\r\n%s\r\n", path, s.address, headers)
}

func (s *siege) bearer() string { return "Authorization: Bearer " + s.token + "\r\n" }

// socket is a hostile WebSocket that connects again when it is cut off.
type socket struct {
	*siege
	conn  net.Conn
	ready []string // sent after connecting
	stuck bool     // reads nothing
}

// say sends a message. What comes back is thrown away, unless the client is
// stuck.
func (k *socket) say(ctx context.Context, message string) {
	if k.conn == nil {
		var err error
		dialer := ws.Dialer{Timeout: 2 * time.Second, NetDial: func(context.Context, string, string) (net.Conn, error) { return k.dial(ctx) }}
		if k.conn, _, _, err = dialer.Dial(ctx, "ws://"+k.address+k.path); err != nil {
			k.conn = nil
			return
		}
		if conn := k.conn; !k.stuck {
			k.group.Go(func() { _, _ = io.Copy(io.Discard, conn) })
		}
		for _, first := range k.ready {
			k.write(first)
		}
	}
	k.write(message)
}

func (k *socket) write(message string) {
	if k.conn == nil {
		return
	}
	_ = k.conn.SetWriteDeadline(time.Now().Add(2 * time.Second))
	if err := wsutil.WriteClientText(k.conn, []byte(message)); err != nil {
		_ = k.conn.Close()
		k.conn = nil
	}
}

// op is a request of AG2's.
func op(name string, params any) string {
	raw, _ := json.Marshal(params) // of maps and strings
	return fmt.Sprintf(`{"kind":"request","request_id":"1","op":%q,"params":%s}`, name, raw)
}

func register(name, scheme string, more map[string]any) string {
	params := map[string]any{"passport": map[string]any{"name": name, "auth": map[string]any{"scheme": scheme, "claim": map[string]any{}}}, "resume": map[string]any{}}
	for key, value := range more {
		params[key] = value
	}
	return op("register", params)
}

func post(channel, sender, data string, audience ...string) string {
	e := map[string]any{"channel_id": channel, "sender_id": sender, "event_type": "ag2.msg.text", "event_data": json.RawMessage(data)}
	if audience != nil {
		e["audience"] = audience
	}
	return op("post_envelope", map[string]any{"envelope": e})
}
