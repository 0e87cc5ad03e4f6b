package agent

import (
	"cmp"
	"context"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

type peersArgs struct {
	Action     string `json:"action"`
	Query      string `json:"query"`
	Capability string `json:"capability"`
	SortBy     string `json:"sort_by"`
	Name       string `json:"name"`
	Limit      *int   `json:"limit"`
}

type foundPeer struct {
	Name         string     `json:"name"`
	ID           string     `json:"agent_id"`
	Summary      string     `json:"summary"`
	Capabilities []string   `json:"capabilities"`
	SuccessRate  *float64   `json:"observed_success_rate"`
	Cost         *foundCost `json:"cost"`
}

type foundCost struct {
	Input  jsontext.Value `json:"input_per_mtok"`
	Output jsontext.Value `json:"output_per_mtok"`
	Tier   *string        `json:"latency_tier"`
}

func peersTool() *Tool {
	return NewTool("peers", "Find other agents, or describe one of them.", `{"type":"object",
"properties":{"action":{"enum":["find","describe"]},"query":{"type":["string","null"],"description":"words in the summary"},
"capability":{"type":["string","null"]},"sort_by":{"enum":["name","cost","track_record",null]},
"name":{"type":["string","null"],"description":"whom to describe"},"limit":{"type":"integer","default":20}},"required":["action"]}`,
		func(ctx context.Context, call *Call, in peersArgs) (any, error) {
			switch in.Action {
			case "find":
				return findPeers(ctx, call.link(), in)
			case "describe":
				return describePeer(ctx, call.link(), in.Name)
			}
			return unknownAction(in.Action, "find", "describe")
		})
}

func findPeers(ctx context.Context, link Link, in peersArgs) (any, error) {
	peers, err := link.Peers(ctx, PeerQuery{Capability: in.Capability, Text: in.Query})
	if err != nil {
		return refusal("find failed: %v", err)
	}
	sortPeers(peers, in.SortBy)
	limit := 20
	if in.Limit != nil {
		limit = max(*in.Limit, 0)
	}
	found := []foundPeer{}
	for _, p := range peers[:min(limit, len(peers))] {
		// Left out last, so that the limit counts the caller too.
		if p.ID != link.Self().ID {
			found = append(found, show(p))
		}
	}
	return found, nil
}

func show(p *Peer) foundPeer {
	f := foundPeer{Name: p.Name, ID: p.ID, Summary: p.Summary, Capabilities: list(p.Capabilities)}
	if rate, ok := p.SuccessRate(); ok {
		f.SuccessRate = &rate
	}
	if p.Cost != nil {
		f.Cost = &foundCost{Input: number(p.Cost.InputPerMTok), Output: number(p.Cost.OutputPerMTok), Tier: optional(p.Cost.LatencyTier)}
	}
	return f
}

func sortPeers(peers []*Peer, by string) {
	switch by {
	case "name":
		slices.SortStableFunc(peers, func(a, b *Peer) int { return cmp.Compare(a.Name, b.Name) })
	case "cost":
		slices.SortStableFunc(peers, func(a, b *Peer) int { return cmp.Compare(price(a), price(b)) })
	case "track_record":
		slices.SortStableFunc(peers, func(a, b *Peer) int {
			x, _ := a.SuccessRate()
			y, _ := b.SuccessRate()
			return cmp.Compare(y, x)
		})
	}
}

// price returns a number to sort by. Peers that state no price come last.
func price(p *Peer) float64 {
	const unknown = 1e300
	if p.Cost == nil {
		return unknown
	}
	// Only for sorting: what is shown is the number as it was stated.
	if f, err := strconv.ParseFloat(p.Cost.InputPerMTok, 64); err == nil && f != 0 {
		return f
	}
	return unknown
}

func describePeer(ctx context.Context, link Link, name string) (any, error) {
	if name == "" {
		return refusal("describe requires `name` (or agent_id)")
	}
	p, err := link.Peer(ctx, name)
	if err != nil {
		return refusal("peer '%s' not found", name)
	}
	skill, err := link.Skill(ctx, p.ID)
	if err != nil {
		return refusal("describe failed: %v", err)
	}
	type passport struct {
		Name     string  `json:"name"`
		ID       string  `json:"agent_id"`
		Owner    string  `json:"owner"`
		Provider *string `json:"provider"`
		Model    *string `json:"model"`
	}
	type resume struct {
		Summary      string              `json:"summary"`
		Capabilities []string            `json:"claimed_capabilities"`
		Domains      []string            `json:"domains"`
		Observed     map[string]Observed `json:"observed"`
	}
	observed := p.Observed
	if observed == nil {
		observed = map[string]Observed{}
	}
	return struct {
		Passport passport `json:"passport"`
		Resume   resume   `json:"resume"`
		Skill    string   `json:"skill_md"`
	}{
		passport{p.Name, p.ID, p.Owner, optional(p.Provider), optional(p.Model)},
		resume{p.Summary, list(p.Capabilities), list(p.Domains), observed},
		skill,
	}, nil
}

// list returns s, or an empty slice for nil, so that it is written as [].
func list[T any](s []T) []T {
	if s == nil {
		return []T{}
	}
	return s
}

func optional(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

func number(s string) jsontext.Value {
	if s == "" {
		return jsontext.Value("null")
	}
	return jsontext.Value(s)
}
