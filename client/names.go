package client

import (
	"context"

	"github.com/parley-hub/parley/adapter"
	"github.com/parley-hub/parley/agent"
	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
)

// withIDs returns an opening with ids in place of names, as the protocol
// requires. What has the form of an id is not looked up.
func (c *Client) withIDs(ctx context.Context, o agent.Opening) (agent.Opening, error) {
	found := map[string]string{}
	lookUp := func(name string) (string, error) {
		if id, ok := found[name]; ok {
			return id, nil
		}
		if envelope.ValidID(name) {
			return name, nil
		}
		p, err := c.Passport(ctx, name)
		if err != nil {
			return "", err
		}
		found[name] = p.AgentID
		return p.AgentID, nil
	}
	participants := make([]string, len(o.Participants))
	for n, name := range o.Participants {
		id, err := lookUp(name)
		if err != nil {
			return o, err
		}
		participants[n] = id
	}
	o.Participants = participants
	namer := knobNamer(o)
	if namer == nil {
		return o, nil
	}
	var failed error
	o.Knobs = namer.NameKnobs(o.Knobs, func(name string) string {
		if failed != nil {
			return name
		}
		id, err := lookUp(name)
		if err == nil {
			return id
		}
		if fault.CodeOf(err) != fault.NotFound { // the hub refuses a name that nobody has
			failed = err
		}
		return name
	})
	return o, failed
}

// knobNamer returns the adapter that knows whom an opening's knobs name; nil if
// there are no knobs or none does.
func knobNamer(o agent.Opening) channel.KnobNamer {
	if len(o.Knobs) == 0 {
		return nil
	}
	for _, a := range adapter.All() {
		if m := a.Manifest(); m.Type == o.Type && m.Version == max(o.Version, 1) {
			namer, _ := a.(channel.KnobNamer)
			return namer
		}
	}
	return nil
}
