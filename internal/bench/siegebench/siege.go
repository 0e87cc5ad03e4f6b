package siegebench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
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

	group   sync.WaitGroup
	acts    atomic.Int64
	mu      sync.Mutex
	reached map[string]int    // by attack
	told    map[string]string // what an attack was answered last, cut
	broken  error             // a bound that did not hold
}

// run starts every attack and waits for the end of all.
func (s *siege) run(ctx context.Context) {
	s.reached, s.told = map[string]int{}, map[string]string{}
	for _, a := range attacks {
		reached := func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.reached[a.name]++
		}
		for i := range max(1, a.clients/s.scale) {
			by := &attacker{name: fmt.Sprintf("siege-%d-%s-%d", s.round, a.short, i), reaches: a.reaches, reached: reached}
			by.told = func(text []byte) {
				s.mu.Lock()
				defer s.mu.Unlock()
				s.told[a.name] = string(text[:min(len(text), 300)])
			}
			by.broke = func(err error) {
				s.mu.Lock()
				defer s.mu.Unlock()
				s.broken = fmt.Errorf("the attack %q broke its bound: %w", a.name, err)
			}
			s.group.Go(func() { a.run(ctx, s, by) })
		}
	}
	s.group.Wait()
}

// each runs a function a number of times, spread over the first three quarters of the
// siege, and then waits for its end.
func (s *siege) each(ctx context.Context, times int, act func(n int)) {
	times = max(1, times/s.scale)
	apart := max(s.lasts*3/4/time.Duration(times), 2*time.Microsecond)
	tick := time.NewTicker(apart / 2) // the first in the middle of its time
	defer tick.Stop()
	for n := range times {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if n == 0 {
			tick.Reset(apart)
		}
		s.acts.Add(1)
		act(n)
	}
	<-ctx.Done()
}

// dial connects, from an address of its own where possible, so that hostile clients
// have the share of a stranger.
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
		_ = tcp.SetReadBuffer(16 << 10) // a connection that does not read is noticed soon
	}
	return c, nil
}

// ends closes a connection at the end of the siege.
func (s *siege) ends(ctx context.Context, c net.Conn) {
	s.group.Go(func() { <-ctx.Done(); _ = c.Close() })
}

// endsUnread is like ends, for a connection that was not read. It reads the connection
// at the end, which shows what the hub answered and whether it cut the connection off.
func (s *siege) endsUnread(ctx context.Context, by *attacker, c net.Conn) {
	s.group.Go(func() {
		defer c.Close() //nolint:errcheck // it may be gone
		<-ctx.Done()
		_ = c.SetReadDeadline(time.Now().Add(500 * time.Millisecond))
		if seen, err := by.watch(io.LimitReader(c, 16<<20)); !seen && (err == nil || !errors.Is(err, os.ErrDeadlineExceeded)) {
			by.reached() // cut off
		}
	})
}

// send writes a request and leaves its answer unread.
func (s *siege) send(ctx context.Context, by *attacker, request string) {
	c, err := s.dial(ctx)
	if err != nil {
		by.reached() // there was no room
		return
	}
	s.endsUnread(ctx, by, c)
	_ = c.SetWriteDeadline(time.Now().Add(2 * time.Second))
	_, _ = io.WriteString(c, request)
}

// watch reads to the end and counts the answers that show that the bound was
// met.
func (by *attacker) watch(from io.Reader) (seen bool, err error) {
	const most = 64 << 10
	buf, kept := make([]byte, most), 0
	for {
		n, err := from.Read(buf[kept:])
		text := buf[:kept+n]
		if found := bytes.Count(text, []byte(by.reaches)); by.reaches != "" && found > 0 {
			seen = true
			for range found {
				by.reached()
			}
			text = nil
		} else if n > 0 && !seen {
			by.told(buf[kept : kept+n])
		}
		if err != nil {
			if errors.Is(err, io.EOF) {
				err = nil
			}
			return seen, err
		}
		kept = copy(buf, text[max(0, len(text)-max(len(by.reaches)-1, 0)):])
	}
}

// ask writes a request and reads what comes back, up to a bound.
func (s *siege) ask(ctx context.Context, by *attacker, request string) {
	c, err := s.dial(ctx)
	if err != nil {
		return
	}
	_ = c.SetDeadline(time.Now().Add(2 * time.Second))
	if _, err := io.WriteString(c, request); err == nil {
		_, _ = by.watch(io.LimitReader(c, 64<<10)) // what came counts
	}
	_ = c.Close()
}

// get returns a request with headers, each with its line end.
func (s *siege) get(path, headers string) string {
	return fmt.Sprintf("GET %s HTTP/1.1\r\nHost: %s\r\n%s\r\n", path, s.address, headers)
}

func (s *siege) bearer() string { return "Authorization: Bearer " + s.token + "\r\n" }

// socket is a hostile WebSocket that connects again when it is cut off.
type socket struct {
	*siege
	by    *attacker
	conn  net.Conn
	first string // sent after connecting
	stuck bool   // reads nothing
	id    atomic.Pointer[string]
	known chan struct{} // closed when it has an id
}

func (s *siege) socket(by *attacker, first string) *socket {
	return &socket{siege: s, by: by, first: first, known: make(chan struct{})}
}

// me returns the client's id from the hub; until it is known, that of another client.
func (k *socket) me() string {
	if id := k.id.Load(); id != nil {
		return *id
	}
	return k.victim
}

// introduced waits for a moment until the server has sent the client's id.
func (k *socket) introduced(ctx context.Context) {
	if k.stuck || k.id.Load() != nil {
		return
	}
	select {
	case <-k.known:
	case <-time.After(300 * time.Millisecond):
	case <-ctx.Done():
	}
}

// Write receives what the server sends, and finds the client's id in it.
func (k *socket) Write(b []byte) (int, error) {
	if _, after, ok := bytes.Cut(b, []byte(`"agent_id":"`)); ok && k.id.Load() == nil {
		if id, _, ok := bytes.Cut(after, []byte(`"`)); ok {
			k.id.Store(new(string(id)))
			close(k.known)
		}
	}
	return len(b), nil
}

// say sends a message. Answers are discarded, unless the client is stuck.
func (k *socket) say(ctx context.Context, message string) {
	k.connect(ctx)
	k.write(message)
}

// connect connects if there is no connection.
func (k *socket) connect(ctx context.Context) {
	if k.conn == nil {
		var err error
		dialer := ws.Dialer{Timeout: 2 * time.Second, NetDial: func(context.Context, string, string) (net.Conn, error) { return k.dial(ctx) }}
		if k.conn, _, _, err = dialer.Dial(ctx, "ws://"+k.address+k.path); err != nil {
			k.conn = nil
			return
		}
		conn := k.conn
		switch {
		case k.stuck:
			k.endsUnread(ctx, k.by, conn)
		case k.by.judge != nil:
			k.ends(ctx, conn)
			k.group.Go(func() { k.by.judged(conn, k) })
		default:
			k.ends(ctx, conn)
			k.group.Go(func() { _, _ = k.by.watch(io.TeeReader(conn, k)) }) // until it ends
		}
		k.write(k.first)
		k.introduced(ctx)
	}
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

// op returns a request of AG2's.
func op(name string, params any) string {
	raw, _ := json.Marshal(params) // of maps and strings
	return fmt.Sprintf(`{"kind":"request","request_id":"1","op":%q,"params":%s}`, name, raw)
}

func register(name, scheme string, more map[string]any) string {
	params := map[string]any{"passport": map[string]any{"name": name, "auth": map[string]any{"scheme": scheme, "claim": map[string]any{}}}, "resume": map[string]any{}}
	maps.Copy(params, more)
	return op("register", params)
}

func post(channel, sender, data string, audience ...string) string {
	e := map[string]any{"channel_id": channel, "sender_id": sender, "event_type": "ag2.msg.text", "event_data": json.RawMessage(data)}
	if audience != nil {
		e["audience"] = audience
	}
	return op("post_envelope", map[string]any{"envelope": e})
}
