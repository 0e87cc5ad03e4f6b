//go:build !unix

package ag2

import "net"

// source reads from a connection into the buffer of frames.
type source interface {
	read(f *frames) (int, error)
}

func sourceOf(conn net.Conn) source { return &plainSource{conn: conn} }
