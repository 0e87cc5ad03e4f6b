package standby

import (
	"net"
	"sync"
)

// Door is a listener that several servers use one after another. A connection that
// arrives between two of them waits for the next server: one in the door, the others in
// the system's backlog.
type Door struct {
	bound net.Listener

	mu      sync.Mutex
	accepts chan accepted
	ended   chan struct{}
	err     error
}

type accepted struct{ conn net.Conn }

// NewDoor makes a door of a listener and accepts its connections.
func NewDoor(bound net.Listener) *Door {
	d := &Door{bound: bound, accepts: make(chan accepted), ended: make(chan struct{})}
	go d.run()
	return d
}

func (d *Door) run() {
	defer close(d.ended)
	for {
		conn, err := d.bound.Accept()
		if err != nil {
			d.mu.Lock()
			d.err = err
			d.mu.Unlock()
			return
		}
		d.accepts <- accepted{conn}
	}
}

// Addr returns the address that the door listens on.
func (d *Door) Addr() net.Addr { return d.bound.Addr() }

// Close stops listening and closes connections that no server has taken.
func (d *Door) Close() error {
	err := d.bound.Close()
	for {
		select {
		case a := <-d.accepts:
			_ = a.conn.Close()
		case <-d.ended:
			return err
		}
	}
}

// Listener returns a listener for one server. Closing it leaves the door open.
func (d *Door) Listener() net.Listener { return &turn{door: d, over: make(chan struct{})} }

type turn struct {
	door *Door
	over chan struct{}
	once sync.Once
}

func (t *turn) Accept() (net.Conn, error) {
	select {
	case <-t.over:
		return nil, net.ErrClosed
	default:
	}
	select {
	case a := <-t.door.accepts:
		return a.conn, nil
	case <-t.over:
		return nil, net.ErrClosed
	case <-t.door.ended:
		t.door.mu.Lock()
		defer t.door.mu.Unlock()
		return nil, t.door.err
	}
}

func (t *turn) Close() error {
	t.once.Do(func() { close(t.over) })
	return nil
}

func (t *turn) Addr() net.Addr { return t.door.Addr() }
