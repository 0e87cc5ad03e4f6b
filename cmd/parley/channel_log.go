package main

import (
	"log/slog"

	"github.com/parley-hub/parley/hub"
)

// channelLog logs how channels begin and end, at the level debug.
type channelLog struct {
	hub.NoopListener
	log *slog.Logger
}

// ChannelEvent logs one step of a channel's life.
func (l channelLog) ChannelEvent(ev hub.ChannelEvent) {
	attrs := []any{"channel_id", ev.Channel}
	if ev.Metadata != nil {
		attrs = append(attrs, "type", ev.Metadata.Manifest.Type)
	}
	if ev.Reason != "" {
		attrs = append(attrs, "reason", ev.Reason)
	}
	l.log.Debug("channel "+ev.Kind, attrs...)
}
