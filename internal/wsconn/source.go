package wsconn

import "net"

// plainSource waits with a few bytes of its own, and takes a buffer once there
// is something to read.
type plainSource struct {
	conn  net.Conn
	first [64]byte
}

func (s *plainSource) read(r *reader) (int, error) {
	r.giveBack()
	n, err := s.conn.Read(s.first[:])
	if n > 0 {
		copy(r.borrow(), s.first[:n])
		return n, nil
	}
	return 0, err
}
