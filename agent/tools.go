package agent

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/parley-hub/parley/adapter/turn"
)

// NetworkTools returns the tools that every agent has unless
// Options.NoNetworkTools is set. To use only some of them, or to have them
// confirmed, set NoNetworkTools and pass those in Options.Tools. A tool that fails
// returns text that begins with Error, which the model reads.
func NetworkTools() []*Tool {
	return []*Tool{delegateTool(), peersTool(), channelsTool(), tasksTool(), contextTool()}
}

// channelTools returns the tools that a channel itself offers.
func channelTools(names []string) []*Tool {
	var tools []*Tool
	if slices.Contains(names, turn.Say) {
		tools = append(tools, sayTool())
	}
	return tools
}

// refusal returns a failure that a model reads.
func refusal(format string, args ...any) (any, error) {
	return fmt.Sprintf("Error: "+format, args...), nil
}

func unknownAction(action string, known ...string) (any, error) {
	return refusal("unknown action '%s'; choose from %s", action, strings.Join(known, ", "))
}

// current returns the channel that the call names, or else the one in which it happens.
func (c *Call) current(named string) string {
	if named != "" || c.Turn == nil || c.Turn.Channel == nil {
		return named
	}
	return c.Turn.Channel.ID
}

// link returns the connection to the hub of the agent that makes the call.
func (c *Call) link() Link { return c.Turn.Agent.link }

// resolve finds ids by name or id, and returns the first name that is unknown.
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
