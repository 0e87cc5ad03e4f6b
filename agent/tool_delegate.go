package agent

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/parley-hub/parley/adapter/consulting"
	"github.com/parley-hub/parley/adapter/turn"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/internal/jsonbuf"
	"github.com/parley-hub/parley/view"
)

type delegation struct {
	Target     string   `json:"target"`
	Prompt     string   `json:"prompt"`
	Capability string   `json:"capability"`
	Timeout    *float64 `json:"timeout"`
}

func (d delegation) timeout() float64 {
	if d.Timeout == nil {
		return 300
	}
	return *d.Timeout
}

func delegateTool() *Tool {
	return NewTool("delegate", "Ask another agent to do something, and wait for its reply.", `{"type":"object",
"properties":{"target":{"type":"string","description":"name or id of the agent"},"prompt":{"type":"string"},
"capability":{"type":["string","null"]},"timeout":{"type":"number","description":"seconds","default":300}},"required":["target","prompt"]}`,
		delegate)
}

func delegate(ctx context.Context, call *Call, in delegation) (any, error) {
	link := call.link()
	peer, err := link.Peer(ctx, in.Target)
	if err != nil {
		// Models trained on function calls tend to prefix names like this.
		if bare, ok := strings.CutPrefix(in.Target, "functions."); ok {
			peer, err = link.Peer(ctx, bare)
		}
	}
	if err != nil {
		return unknownTarget(ctx, link, in.Target)
	}
	if peer.ID == link.Self().ID {
		return refusal("cannot delegate to self (target '%s' is this agent)", in.Target)
	}
	o := Opening{Type: consulting.Type, Participants: []string{peer.ID}}
	if in.Capability != "" {
		b := &jsonbuf.Buffer{}
		if o.Knobs, err = b.Open('{').Key("capability").String(in.Capability).Close('}').Result(); err != nil {
			return refusal("failed to open consulting channel: %v", err)
		}
	}
	lanes := call.Turn.Agent.lanes
	defer lanes.expect()()
	m, err := link.OpenChannel(ctx, o)
	if err != nil {
		return refusal("failed to open consulting channel: %v", err)
	}
	// The reply may be there before the send returns.
	box := lanes.divert(m.ID)
	defer lanes.restore(m.ID)
	taskID, end, err := call.Turn.trackDelegation(ctx, peer, in)
	if err != nil {
		return refusal("the delegation cannot be recorded: %v", err)
	}
	e, err := turn.BuildText(m.ID, link.Self().ID, in.Prompt, turn.Address{Audience: []string{peer.ID}})
	if err == nil {
		e.Depth, e.Task = call.Turn.Depth()+1, taskID
		_, err = link.Post(ctx, e)
	}
	if err != nil {
		end(err.Error())
		return refusal("prompt send failed: %v", err)
	}
	reply, err := awaitReply(ctx, box, peer.ID, in)
	if failed, _ := reply.(string); err == nil && strings.HasPrefix(failed, "Error: ") {
		end(failed)
	} else if err == nil {
		end("")
	}
	return reply, err
}

func unknownTarget(ctx context.Context, link Link, target string) (any, error) {
	var names []string
	if peers, err := link.Peers(ctx, PeerQuery{}); err == nil {
		for _, p := range peers {
			if p.ID != link.Self().ID {
				names = append(names, p.Name)
			}
		}
	}
	if len(names) == 0 {
		return refusal("target '%s' not found", target)
	}
	slices.Sort(names)
	return refusal("target '%s' not found. Available targets: [%s]", target, strings.Join(names, ", "))
}

func awaitReply(ctx context.Context, box *inflow, target string, in delegation) (any, error) {
	seconds := in.timeout()
	limited, stop := context.WithTimeout(ctx, duration(seconds))
	defer stop()
	for {
		e, err := box.next(limited, nil)
		if err != nil {
			if ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) {
				return refusal("delegate to '%s' timed out after %ss", in.Target, strconv.FormatFloat(seconds, 'g', -1, 64))
			}
			return nil, err
		}
		switch e.Type {
		case envelope.TypeText:
			if text, ok := (view.TextOnly{}).Render(e); ok && e.Sender == target {
				return text, nil
			}
		case envelope.TypeClosed, envelope.TypeExpired, envelope.TypeInviteReject:
			return refusal("delegate to '%s' channel closed: %s", in.Target, reasonOf(e))
		}
	}
}

// duration returns a model's number of seconds, within reason.
func duration(seconds float64) time.Duration {
	const year = 365 * 24 * time.Hour
	return time.Duration(min(max(seconds, 0), year.Seconds()) * float64(time.Second))
}

// reasonOf returns why a channel ended.
func reasonOf(e *envelope.Envelope) string {
	var data struct {
		Reason string `json:"reason"`
	}
	_ = json.Unmarshal(e.Data, &data) // an envelope without a reason has none
	return data.Reason
}
