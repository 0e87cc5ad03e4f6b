package ag2

import "net"

// plainSource waits with a few bytes of its own, and takes a buffer once there
// is something to put into it.
type plainSource struct {
	conn  net.Conn
	first [64]byte
}

func (s *plainSource) read(f *frames) (int, error) {
	if f.start != f.end {
		return s.conn.Read(f.borrow())
	}
	f.giveBack()
	n, err := s.conn.Read(s.first[:])
	if n > 0 {
		copy(f.borrow(), s.first[:n])
		return n, nil
	}
	return 0, err
}
