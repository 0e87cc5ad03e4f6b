package wsconn

import (
	"time"

	"github.com/gobwas/ws"
)

// keepAlive pings silent connections and ends those that do not answer. One
// goroutine serves all, so that an idle connection needs no timer.
func (s *Server) keepAlive() {
	every := max(min(s.cfg.Limits.Ping, s.cfg.Limits.Pong)/4, time.Millisecond)
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		select {
		case <-s.ctx.Done():
			return
		case <-ticker.C:
			now := s.cfg.Now()
			for _, c := range s.All() {
				c.keepAlive(now)
			}
		}
	}
}

// keepAlive pings the peer, or ends a connection whose peer did not answer.
func (c *Conn) keepAlive(now time.Time) {
	limits := &c.server.cfg.Limits
	silence := now.Sub(time.Unix(0, c.heard.Load()))
	switch {
	case silence < limits.Ping:
		c.pinged.Store(false)
	case silence >= limits.Ping+limits.Pong:
		c.server.stats.silent.Add(1)
		c.End(&CloseError{Internal, "no answer to pings"})
	case !c.pinged.Swap(true):
		_ = c.Send(Frame{control: ws.OpPing})
	}
}
