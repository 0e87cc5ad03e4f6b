package ag2bench

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"time"

	"github.com/gobwas/ws"

	"github.com/parley-hub/parley/dialect/ag2/wire"
	"github.com/parley-hub/parley/identity"
)

// peer is the client's end of a connection, and the identity on it. It is
// lean, because it takes its time from the same machine as the hub.
type peer struct {
	conn net.Conn
	in   *bufio.Reader
	id   string
	stop func() bool // forgets the context
}

// Sizes of what is read at once.
const (
	busyBuffer = 64 << 10
	idleBuffer = 256
)

func dial(ctx context.Context, url string, buffer int) (*peer, error) {
	conn, early, _, err := ws.Dialer{Timeout: patience}.Dial(ctx, url)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", url, err)
	}
	if early != nil {
		defer ws.PutReader(early)
		if early.Buffered() > 0 {
			_ = conn.Close()
			return nil, fmt.Errorf("%s spoke before it was spoken to", url)
		}
	}
	p := &peer{conn: conn, in: bufio.NewReaderSize(conn, buffer)}
	p.stop = context.AfterFunc(ctx, func() { _ = conn.Close() })
	return p, nil
}

func (p *peer) close() {
	p.stop()
	_ = p.conn.Close()
}

func closeAll(peers []*peer) {
	for _, p := range peers {
		p.close()
	}
}

// expect lets a hub be silent for a moment longer than a duration.
func (p *peer) expect(d time.Duration) {
	_ = p.conn.SetReadDeadline(time.Now().Add(d + patience)) // a dead connection is noticed when it is read
}

// sizes returns the sizes of the next frame's header and payload, as far as it
// is buffered.
func sizes(b []byte) (header, payload int) {
	if len(b) < 2 {
		return 2, 0
	}
	switch n := int(b[1] & 0x7f); n {
	case 126:
		if len(b) < 4 {
			return 4, 0
		}
		return 4, int(binary.BigEndian.Uint16(b[2:]))
	case 127:
		if len(b) < 10 {
			return 10, 0
		}
		return 10, int(binary.BigEndian.Uint64(b[2:]))
	default:
		return 2, n
	}
}

// frame reads the next frame; its payload is good until the next read.
func (p *peer) frame() (ws.OpCode, []byte, error) {
	for need := 2; ; {
		b, err := p.in.Peek(need)
		if err != nil {
			return 0, nil, err
		}
		header, payload := sizes(b)
		if need = header + payload; len(b) < need {
			continue
		}
		_, err = p.in.Discard(need)
		return ws.OpCode(b[0] & 0x0f), b[header:need], err
	}
}

// waits reports whether a whole frame can be read without waiting.
func (p *peer) waits() bool {
	b, _ := p.in.Peek(min(p.in.Buffered(), 10))
	header, payload := sizes(b)
	return len(b) >= header && p.in.Buffered() >= header+payload
}

// next reads the next message and answers pings on the way.
func (p *peer) next() ([]byte, error) {
	for {
		op, payload, err := p.frame()
		switch {
		case err != nil:
			return nil, err
		case op == ws.OpText:
			return payload, nil
		case op == ws.OpPing:
			if _, err := p.conn.Write(masked(ws.NewPongFrame(bytes.Clone(payload)))); err != nil {
				return nil, err
			}
		case op == ws.OpClose:
			return nil, fmt.Errorf("the hub closed the connection: %q", payload)
		}
	}
}

// masked encodes a client's frame. Its mask is fixed, which costs the hub the
// same as any.
func masked(f ws.Frame) []byte {
	return ws.MustCompileFrame(ws.MaskFrameInPlaceWith(f, [4]byte{0x5a, 0xc3, 0x3c, 0xa5}))
}

func message(text []byte) []byte { return masked(ws.NewTextFrame(text)) }

// request encodes an operation.
func request(op wire.Op, params []byte) []byte {
	return message(wire.AppendRequest(nil, &wire.Request{ID: requestID, Op: op, Params: params}))
}

// requestID is that of every request: a peer matches answers by their order.
const requestID = "18a0c4000000000000000000000000aa"

// call asks for an operation and waits for its answer.
func (p *peer) call(op wire.Op, params any) ([]byte, error) {
	encoded, err := wire.EncodeParams(params)
	if err != nil {
		return nil, err
	}
	if _, err := p.conn.Write(request(op, encoded)); err != nil {
		return nil, err
	}
	return p.answered()
}

// nextFrame reads and decodes a frame.
func (p *peer) nextFrame() (wire.Frame, error) {
	payload, err := p.next()
	if err != nil {
		return nil, err
	}
	return wire.Decode(bytes.Clone(payload))
}

// answered waits for an answer and passes over all else.
func (p *peer) answered() ([]byte, error) {
	p.expect(0)
	for {
		frame, err := p.nextFrame()
		if err != nil {
			return nil, err
		}
		if r, ok := frame.(*wire.Response); ok {
			if !r.OK {
				return nil, fmt.Errorf("%s: %s", r.Code, r.Message)
			}
			return r.Result, nil
		}
	}
}

// join makes a connection with a new identity that takes any number of
// deliveries.
func join(ctx context.Context, url, name string) (*peer, error) {
	p, err := dial(ctx, url, busyBuffer)
	if err != nil {
		return nil, err
	}
	if p.id, err = p.register(name); err != nil {
		p.close()
		return nil, fmt.Errorf("register %s: %w", name, err)
	}
	return p, nil
}

func (p *peer) register(name string) (string, error) {
	rule, resume := identity.DefaultRule(), identity.DefaultResume()
	rule.Limits.Inbox.MaxPending = 0
	resume.Version = 1
	result, err := p.call(wire.Register, wire.RegisterParams{
		Passport: &identity.Passport{Name: name, Version: 1, Auth: identity.Auth{Scheme: identity.SchemeNone}}, Resume: &resume, Rule: &rule,
	})
	if err != nil {
		return "", err
	}
	var passport identity.Passport
	err = wire.DecodeResult(result, &passport)
	return passport.AgentID, err
}
