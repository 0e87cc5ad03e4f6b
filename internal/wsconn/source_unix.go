//go:build unix

package wsconn

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"syscall"
)

// source reads from a connection into the buffer of a reader.
type source interface {
	read(r *reader) (int, error)
}

func sourceOf(conn net.Conn) source {
	// TLS reads through buffers of its own.
	if _, ok := conn.(*tls.Conn); !ok {
		if sc, ok := conn.(syscall.Conn); ok {
			if raw, err := sc.SyscallConn(); err == nil {
				return &rawSource{raw: raw}
			}
		}
	}
	return &plainSource{conn: conn}
}

// rawSource takes a buffer only once there is something to read.
type rawSource struct {
	raw syscall.RawConn
}

func (s *rawSource) read(r *reader) (int, error) {
	var n int
	var failed error
	err := s.raw.Read(func(fd uintptr) bool {
		for {
			n, failed = syscall.Read(int(fd), r.borrow())
			if !errors.Is(failed, syscall.EINTR) {
				break
			}
		}
		if errors.Is(failed, syscall.EAGAIN) {
			r.giveBack()
			return false
		}
		return true
	})
	switch {
	case err != nil:
		return 0, err
	case failed != nil:
		return 0, failed
	case n <= 0:
		return 0, io.EOF
	}
	return n, nil
}
