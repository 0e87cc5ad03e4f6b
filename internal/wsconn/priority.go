package wsconn

import "time"

// Priority says which frames go before others that wait.
type Priority int8

// Priorities. A Fixed frame, which is the zero value, keeps its place: it
// overtakes no other and none overtakes it.
const (
	Fixed Priority = iota
	Low
	Ordinary
	High
)

// insert puts a frame after all others, except those of lower priority.
func (q *queue) insert(f Frame) {
	if q.conn.server.cfg.OnQueue != nil {
		q.conn.server.cfg.OnQueue(q.conn, &f)
	}
	q.count(&f)
	f.Priority = q.priorityOf(&f)
	q.unusual += unusual(&f)
	if q.frames == nil {
		q.frames = emptyList()
	}
	q.frames = append(q.frames, f)
	last := len(q.frames) - 1
	at := last
	for at > q.head && f.overtakes(&q.frames[at-1]) {
		q.frames[at] = q.frames[at-1]
		at--
	}
	if at != last {
		q.frames[at] = f
	}
	if !q.writing {
		q.moved = time.Now()
		if f.Now {
			q.writing = q.conn.Go(q.write)
		} else {
			q.writing = q.conn.Go(q.gather)
		}
	}
}

// priorityOf returns a frame's priority, lowered to that of the last frame of
// the same stream and tail before it. These stay in order, because
// acknowledging one of a stream acknowledges all before it.
func (q *queue) priorityOf(f *Frame) Priority {
	if f.Priority == Fixed || f.Priority == Ordinary && q.unusual == 0 {
		return f.Priority
	}
	for at := len(q.frames) - 1; at >= q.head; at-- {
		other := &q.frames[at]
		if other.Priority != Fixed && other.Stream == f.Stream && string(other.Tail) == string(f.Tail) {
			return min(f.Priority, other.Priority)
		}
	}
	return f.Priority
}

// unusual counts frames that are neither fixed nor ordinary.
func unusual(f *Frame) int {
	if f.Priority == Fixed || f.Priority == Ordinary {
		return 0
	}
	return 1
}

func (f *Frame) overtakes(other *Frame) bool {
	return other.Priority != Fixed && other.Priority < f.Priority
}
