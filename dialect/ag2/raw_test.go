package ag2_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/gobwas/ws"
)

// raw is a client that writes arbitrary bytes.
type raw struct {
	t    testing.TB
	conn net.Conn
	in   *bufio.Reader
}

const upgrade = "GET /link HTTP/1.1\r\nHost: hub\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n" +
	"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n"

// connect opens a socket without sending anything.
func (r *rig) connect() *raw {
	r.t.Helper()
	conn, err := (&net.Dialer{}).DialContext(context.Background(), "tcp", r.address())
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(wait))
	return &raw{t: r.t, conn: conn, in: bufio.NewReader(conn)}
}

// raw upgrades; more is sent directly after the request.
func (r *rig) raw(more ...byte) *raw {
	r.t.Helper()
	c := r.connect()
	c.write(append([]byte(upgrade+"\r\n"), more...))
	response, err := http.ReadResponse(c.in, nil)
	if err != nil {
		r.t.Fatal(err)
	}
	_ = response.Body.Close()
	if response.StatusCode != http.StatusSwitchingProtocols || response.Header.Get("Sec-WebSocket-Accept") != "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=" {
		r.t.Fatalf("upgrade got %s %v", response.Status, response.Header)
	}
	return c
}

func (c *raw) write(b []byte) {
	c.t.Helper()
	if _, err := c.conn.Write(b); err != nil {
		c.t.Fatal(err)
	}
}

// frame makes a masked frame.
func frame(fin bool, op byte, payload []byte) []byte { return rawFrame(fin, 0, op, true, payload) }

func rawFrame(fin bool, rsv, op byte, masked bool, payload []byte) []byte {
	first := op | rsv<<4
	if fin {
		first |= 0x80
	}
	second := byte(0)
	if masked {
		second = 0x80
	}
	b := []byte{first}
	switch n := len(payload); {
	case n < 126:
		b = append(b, second|byte(n))
	case n < 1<<16:
		b = binary.BigEndian.AppendUint16(append(b, second|126), uint16(n))
	default:
		b = binary.BigEndian.AppendUint64(append(b, second|127), uint64(n))
	}
	if !masked {
		return append(b, payload...)
	}
	mask := [4]byte{1, 2, 3, 4}
	b = append(b, mask[:]...)
	masking := bytes.Clone(payload)
	ws.Cipher(masking, mask, 0)
	return append(b, masking...)
}

const (
	opContinuation = 0
	opText         = 1
	opBinary       = 2
	opClose        = 8
	opPing         = 9
	opPong         = 10
)

// read returns the next frame, which a hub sends whole and unmasked.
func (c *raw) read() (op ws.OpCode, payload []byte, err error) {
	h, err := ws.ReadHeader(c.in)
	if err != nil {
		return 0, nil, err
	}
	if !h.Fin || h.Masked || h.Rsv != 0 {
		c.t.Errorf("a frame of the hub has header %+v", h)
	}
	payload = make([]byte, h.Length)
	_, err = io.ReadFull(c.in, payload)
	return h.OpCode, payload, err
}

// expect requires the next frame.
func (c *raw) expect(op ws.OpCode, payload string) {
	c.t.Helper()
	gotOp, got, err := c.read()
	if err != nil || gotOp != op || string(got) != payload {
		c.t.Fatalf("got opcode %d, %q, %v; want %d, %q", gotOp, got, err, op, payload)
	}
}

// expectClose requires a close frame with a code, and then the end of the
// connection.
func (c *raw) expectClose(code ws.StatusCode) (reason string) {
	c.t.Helper()
	op, payload, err := c.read()
	if err != nil || op != ws.OpClose || len(payload) < 2 {
		c.t.Fatalf("got opcode %d, %q, %v; want a close frame", op, payload, err)
	}
	if got := ws.StatusCode(binary.BigEndian.Uint16(payload)); got != code {
		c.t.Fatalf("closed with %d %q, want %d", got, payload[2:], code)
	}
	if _, _, err := c.read(); !errors.Is(err, io.EOF) {
		c.t.Fatalf("after the close frame came %v, want the end", err)
	}
	return string(payload[2:])
}

func closePayload(code int, reason string) []byte {
	return append(binary.BigEndian.AppendUint16(nil, uint16(code)), reason...)
}
