package workflow

import (
	"cmp"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-hub/parley/adapter/internal/ag2"
	"github.com/parley-hub/parley/adapter/turn"
	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/graph"
	"github.com/parley-hub/parley/view"
)

// View returns the view of the last two rounds, with names.
func (Adapter) View(m *channel.Metadata, _ string) view.View { return ag2.GroupView(m) }

// Render shows a text unchanged and a packet as its handoff and its body.
func (a Adapter) Render(e *envelope.Envelope) (string, bool) {
	if e.Type != envelope.TypePacket {
		return a.Common.Render(e)
	}
	text := packetText(e, "")
	return text, text != ""
}

// Input does the same as Render, but also names a handoff whose tool is unknown.
func (a Adapter) Input(e *envelope.Envelope) string {
	if e.Type != envelope.TypePacket {
		return a.Common.Input(e)
	}
	return packetText(e, graph.RoutingHandoff)
}

func packetText(e *envelope.Envelope, unknownTool string) string {
	var parts []string
	if p := graph.ReadPacket(e.Data); p.Kind == graph.RoutingHandoff {
		tool := cmp.Or(p.Tool, unknownTool)
		parts = append(parts, strings.TrimSpace("[Handed off via "+tool+"] "+p.Reason))
	}
	if body := bodyOf(e.Data); body != "" {
		parts = append(parts, body)
	}
	return strings.Join(parts, "\n")
}

func bodyOf(data []byte) string {
	var packet struct {
		Body jsontext.Value `json:"body"`
	}
	if json.Unmarshal(data, &packet, jsontext.AllowDuplicateNames(true)) != nil || packet.Body.Kind() != '"' {
		return ""
	}
	text, err := jsontext.AppendUnquote(nil, packet.Body)
	if err != nil {
		return ""
	}
	return string(text)
}

// Reply returns one packet with the round's routing and body. A round with neither
// is silent, and the channel continues to wait for the same speaker.
func (Adapter) Reply(m *channel.Metadata, s channel.State, sender string, r turn.Round, ids turn.Directory) (*envelope.Envelope, error) {
	routing := turn.Routing{Kind: turn.KindText}
	if state, ok := s.(*State); ok {
		routing = turn.Route(state.Graph.Tools(), r, ids)
	}
	if routing.Kind == turn.KindText && r.Body == "" {
		return nil, nil
	}
	return routing.Envelope(m.ID, sender, r.Body)
}

// Turns counts the texts and packets so far.
func (Adapter) Turns(s channel.State) (int, bool) {
	state, ok := s.(*State)
	if !ok {
		return 0, false
	}
	return state.Facts.Turns, true
}

var (
	_ channel.Adapter    = Adapter{}
	_ channel.Supervised = Adapter{}
	_ turn.Driver        = Adapter{}
)
