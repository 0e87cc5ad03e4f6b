package ag2

import (
	"github.com/parley-hub/parley/dialect/ag2/wire"
	"github.com/parley-hub/parley/internal/wsconn"
)

// showIn logs a received frame, if DebugFrames is set.
func (c *conn) showIn(frame []byte) {
	if c.server.cfg.DebugFrames {
		c.show("in", wire.KindOf(frame), len(frame))
	}
}

// showOut logs a frame that is queued.
func showOut(to *wsconn.Conn, f *wsconn.Frame) {
	c, ok := to.Handler().(*conn)
	if !ok || !f.IsMessage() {
		return
	}
	kind := "notify"
	if f.Tail == nil {
		kind = wire.KindOf(f.Body)
	}
	c.show("out", kind, f.Len())
}

func (c *conn) show(direction, kind string, bytes int) {
	c.server.cfg.Log.Info("frame", "direction", direction, "kind", kind, "bytes", bytes, "endpoint_id", c.ID())
}
