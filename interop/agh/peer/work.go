package peer

import "sync"

// ledger is the state of the work that a peer takes part in, as the peer sees
// it.
type ledger struct {
	mu     sync.Mutex
	states map[string]*work
}

type work struct{ opener, target, container, state string }

func (w *work) ended() bool {
	return w.state == "completed" || w.state == "failed" || w.state == "canceled"
}

func container(e Envelope) string {
	return e.Text("channel") + "/" + e.Text("surface") + "/" + e.Text("thread_id") + e.Text("direct_id")
}

// apply folds a message that was sent or received.
func (l *ledger) apply(e Envelope) {
	l.mu.Lock()
	defer l.mu.Unlock()
	id, from, to, kind := e.Text("work_id"), e.Text("from"), e.Text("to"), e.Text("kind")
	w := l.states[id]
	talk := kind == "say" || kind == "capability"
	if w == nil {
		if id != "" && talk && to != "" {
			l.states[id] = &work{from, to, container(e), "submitted"}
		}
		return
	}
	if w.container != container(e) || from != w.opener && from != w.target || w.ended() {
		return
	}
	switch {
	case talk:
		if w.state == "needs_input" {
			w.state = "working"
		}
	case kind == "trace" && e.Body("state") != "submitted":
		w.state = e.Body("state")
	case kind == "receipt" && e.Body("status") == "rejected":
		w.state = "failed"
	case kind == "receipt" && e.Body("status") == "canceled":
		w.state = "canceled"
	}
}

// Work is the state of a piece of work as the peer sees it.
func (p *Peer) Work(id string) string {
	p.works.mu.Lock()
	defer p.works.mu.Unlock()
	if w := p.works.states[id]; w != nil {
		return w.state
	}
	return ""
}
