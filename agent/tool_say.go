package agent

import (
	"context"

	"github.com/parley-hub/parley/adapter/turn"
)

func sayTool() *Tool {
	type args struct {
		Content  string   `json:"content"`
		Audience []string `json:"audience"`
		Channel  string   `json:"channel_id"`
	}
	return NewTool("say", "Post a message into the channel, beside the reply that ends your turn.", `{"type":"object",
"properties":{"content":{"type":"string"},
"audience":{"type":["array","null"],"items":{"type":"string"},"description":"names of the peers to tell; null tells everyone"},
"channel_id":{"type":["string","null"],"description":"only outside a channel"}},"required":["content"]}`,
		func(ctx context.Context, call *Call, in args) (any, error) {
			id := in.Channel
			if call.Turn.Channel != nil {
				id = call.Turn.Channel.ID
			}
			if id == "" {
				return refusal("no current channel and no channel_id provided")
			}
			link := call.link()
			m, err := link.Channel(ctx, id)
			if err != nil {
				return refusal("channel '%s' not found: %v", id, err)
			}
			var to turn.Address
			if in.Audience != nil {
				ids, unknown := resolve(ctx, link, in.Audience)
				if unknown != "" {
					return refusal("peer '%s' not found", unknown)
				}
				to.Audience = append([]string{}, ids...)
			}
			governs, err := call.Turn.Agent.adapterOf(m)
			if err != nil {
				return refusal("adapter unavailable for channel '%s': %v", id, err)
			}
			e, err := turn.For(governs).BuildText(id, link.Self().ID, in.Content, to)
			if err != nil {
				return refusal("send failed: %v", err)
			}
			posted, err := link.Post(ctx, e)
			if err != nil {
				return refusal("send failed: %v", err)
			}
			return "posted envelope " + posted, nil
		})
}
