package ag2

import (
	"github.com/gobwas/ws"

	"github.com/parley-hub/parley/dialect/ag2/wire"
)

// showIn logs a frame that arrived, if frames are to be shown.
func (c *conn) showIn(frame []byte) {
	if c.server.cfg.DebugFrames {
		c.show("in", wire.KindOf(frame), len(frame))
	}
}

// showOut logs a frame that is queued.
func (c *conn) showOut(i *item) {
	if !c.server.cfg.DebugFrames || i.op != ws.OpText {
		return
	}
	kind := "notify"
	if i.tail == nil {
		kind = wire.KindOf(i.body)
	}
	c.show("out", kind, i.size())
}

func (c *conn) show(direction, kind string, bytes int) {
	c.server.cfg.Log.Info("frame", "direction", direction, "kind", kind, "bytes", bytes, "endpoint_id", c.id)
}
