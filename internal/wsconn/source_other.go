//go:build !unix

package wsconn

import "net"

// source reads from a connection into the buffer of a reader.
type source interface {
	read(r *reader) (int, error)
}

func sourceOf(conn net.Conn) source { return &plainSource{conn: conn} }
