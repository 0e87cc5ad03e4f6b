package agh

import (
	"context"
	"net/http"
	"slices"

	"github.com/parley-hub/parley/dialect/agh/wire"
)

// statusShape is the state of the network.
type statusShape struct {
	Enabled                  bool        `json:"enabled"`
	Status                   string      `json:"status"`
	ConfiguredDefaultChannel string      `json:"configured_default_channel,omitempty"`
	EffectiveDefaultChannel  string      `json:"effective_default_channel,omitempty"`
	EffectiveDefaultSource   string      `json:"effective_default_source,omitempty"`
	ListenerHost             string      `json:"listener_host,omitempty"`
	ListenerPort             int         `json:"listener_port,omitzero"`
	LastDisconnect           string      `json:"last_disconnect,omitempty"`
	LocalPeers               int         `json:"local_peers,omitzero"`
	RemotePeers              int         `json:"remote_peers,omitzero"`
	Channels                 int         `json:"channels,omitzero"`
	QueuedMessages           int         `json:"queued_messages,omitzero"`
	QueuedSessions           int         `json:"queued_sessions,omitzero"`
	DeliveryWorkers          int         `json:"delivery_workers,omitzero"`
	MessagesSent             int64       `json:"messages_sent,omitzero"`
	MessagesReceived         int64       `json:"messages_received,omitzero"`
	MessagesRejected         int64       `json:"messages_rejected,omitzero"`
	MessagesDelivered        int64       `json:"messages_delivered,omitzero"`
	WorkflowTaggedEvents     int64       `json:"workflow_tagged_events,omitzero"`
	HandoffTaggedEvents      int64       `json:"handoff_tagged_events,omitzero"`
	OpenThreads              int         `json:"open_threads,omitzero"`
	OpenDirectRooms          int         `json:"open_direct_rooms,omitzero"`
	OpenWorkItems            int         `json:"open_work_items,omitzero"`
	ConversationMessages     int         `json:"conversation_messages,omitzero"`
	WorkTransitions          int64       `json:"work_transitions,omitzero"`
	DirectResolves           int64       `json:"direct_resolves,omitzero"`
	DeclaredChannels         []string    `json:"declared_channels,omitempty"`
	KindMetrics              []kindShape `json:"kind_metrics,omitempty"`
}

type kindShape struct {
	Kind      wire.Kind `json:"kind"`
	Sent      int64     `json:"sent,omitzero"`
	Received  int64     `json:"received,omitzero"`
	Rejected  int64     `json:"rejected,omitzero"`
	Delivered int64     `json:"delivered,omitzero"`
}

func (c *call) status() error {
	if c.s.cfg.Disabled {
		return c.answer(http.StatusOK, map[string]any{"network": statusShape{Status: "disabled"}})
	}
	shape, err := c.s.status(c.Context(), func(r *netChannel) bool { return c.sees(r) == nil })
	if err != nil {
		return err
	}
	return c.answer(http.StatusOK, map[string]any{"network": shape})
}

// status is how the network is doing. It names the channels that the caller sees; all
// are counted.
func (s *Server) status(ctx context.Context, sees func(*netChannel) bool) (statusShape, error) {
	shape := statusShape{
		Enabled: true, Status: "running", ConfiguredDefaultChannel: s.cfg.DefaultChannel, EffectiveDefaultChannel: s.cfg.DefaultChannel,
		EffectiveDefaultSource: "config", WorkTransitions: s.counts.transitions.Load(), DirectResolves: s.counts.resolves.Load(),
		MessagesSent: s.counts.total(sent), MessagesReceived: s.counts.total(received), MessagesRejected: s.counts.total(rejected),
		MessagesDelivered: s.counts.total(delivered), WorkflowTaggedEvents: s.counts.workflow.Load(), HandoffTaggedEvents: s.counts.handoff.Load(),
	}
	for _, sp := range s.list() {
		for _, r := range sp.list() {
			shape.Channels++
			if !slices.Contains(shape.DeclaredChannels, r.channel) && sees(r) {
				shape.DeclaredChannels = append(shape.DeclaredChannels, r.channel)
			}
			shape.RemotePeers += len(r.others())
			t, err := r.counts(ctx)
			if err != nil {
				return shape, err
			}
			shape.OpenThreads += t.conversations[wire.Thread]
			shape.OpenDirectRooms += t.conversations[wire.Direct]
			shape.OpenWorkItems += t.openWork[wire.Thread] + t.openWork[wire.Direct]
			shape.ConversationMessages += t.all
			for _, p := range r.everyone() {
				shape.LocalPeers++
				if p.queue.attended() {
					shape.DeliveryWorkers++
				}
				if n := p.queue.len(); n > 0 {
					shape.QueuedMessages += n
					shape.QueuedSessions++
				}
			}
		}
	}
	slices.Sort(shape.DeclaredChannels)
	if s.cfg.Broker != nil {
		shape.ListenerHost, shape.ListenerPort = s.cfg.Broker.Address()
	}
	if why := s.broken.Load(); why != nil {
		shape.Status, shape.LastDisconnect = "disconnected", *why
	}
	for i, k := range wire.Kinds() {
		n := &s.counts.kinds[i]
		shape.KindMetrics = append(shape.KindMetrics, kindShape{k, n.sent.Load(), n.received.Load(), n.rejected.Load(), n.delivered.Load()})
	}
	return shape, nil
}
