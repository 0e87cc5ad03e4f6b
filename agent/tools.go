package agent

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/parley-hub/parley/adapter/turn"
)

// NetworkTools are what every agent can do besides answering, unless
// Options.NoNetworkTools leaves them out: whoever wants some of them, or wants
// them confirmed, gives those as Options.Tools. Their failures are returned as
// text that begins with Error, never raised: the model reads them and decides.
func NetworkTools() []*Tool {
	return []*Tool{delegateTool(), peersTool(), channelsTool(), tasksTool(), contextTool()}
}

// channelTools are those that a channel itself offers.
func channelTools(names []string) []*Tool {
	var tools []*Tool
	if slices.Contains(names, turn.Say) {
		tools = append(tools, sayTool())
	}
	return tools
}

// refusal is a failure that a model reads.
func refusal(format string, args ...any) (any, error) {
	return fmt.Sprintf("Error: "+format, args...), nil
}

func unknownAction(action string, known ...string) (any, error) {
	return refusal("unknown action '%s'; choose from %s", action, strings.Join(known, ", "))
}

// current is the id of the channel a call happens in, or what the call names.
func (c *Call) current(named string) string {
	if named != "" || c.Turn == nil || c.Turn.Channel == nil {
		return named
	}
	return c.Turn.Channel.ID
}

// link is the way to the hub of whoever makes the call.
func (c *Call) link() Link { return c.Turn.Agent.link }

// resolve finds ids by name or id; the first one unknown is returned.
func resolve(ctx context.Context, link Link, names []string) (ids []string, unknown string) {
	for _, name := range names {
		peer, err := link.Peer(ctx, name)
		if err != nil {
			return nil, name
		}
		ids = append(ids, peer.ID)
	}
	return ids, ""
}
