package turn

import (
	"cmp"
	"slices"

	"github.com/go-json-experiment/json"

	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/internal/jsonbuf"
)

// Kinds of routing that a packet may carry.
const (
	KindText    = "text"
	KindHandoff = "handoff"
	KindFinish  = "finish"
)

// Round is what one model round produced.
type Round struct {
	Body    string
	Calls   []Call         // in the order the model made them
	Results map[string]any // by call id
}

// Call is a tool call of a model.
type Call struct {
	ID        string
	Name      string
	Arguments string // JSON text
}

// Handoff as a tool's result makes another agent the next speaker. The
// target is a name by convention; an id works too.
type Handoff struct {
	Target string
	Reason string
}

// Finish as a tool's result ends the workflow. Its reason is "finished" where
// none is given.
type Finish struct {
	Summary string
	Reason  string
}

// Routing is the decision that a packet carries.
type Routing struct {
	Kind    string
	Tool    string
	Reason  string
	Target  string // of a handoff whose target a tool chose
	Summary string // of a finish
}

// Route reads the routing out of a round: the first call that returned a
// Finish or a Handoff, or whose name is among static, decides; for one and the
// same call what it returned beats its name.
func Route(static []string, r Round, ids Directory) Routing {
	for _, call := range r.Calls {
		switch result := r.Results[call.ID].(type) {
		case Finish:
			return result.routing(call)
		case *Finish:
			if result != nil {
				return result.routing(call)
			}
		case Handoff:
			return result.routing(call, ids)
		case *Handoff:
			if result != nil {
				return result.routing(call, ids)
			}
		}
		if slices.Contains(static, call.Name) {
			return Routing{Kind: KindHandoff, Tool: call.Name, Reason: reasonOf(call.Arguments)}
		}
	}
	return Routing{Kind: KindText}
}

func (f Finish) routing(call Call) Routing {
	reason := cmp.Or(f.Reason, "finished")
	return Routing{Kind: KindFinish, Tool: call.Name, Reason: reason, Summary: f.Summary}
}

func (h Handoff) routing(call Call, ids Directory) Routing {
	target := h.Target
	if ids != nil {
		if id, ok := ids(target); ok {
			target = id
		}
	}
	return Routing{Kind: KindHandoff, Tool: call.Name, Reason: h.Reason, Target: target}
}

// reasonOf is the call's own argument of that name, if it is a text.
func reasonOf(arguments string) string {
	var args struct {
		Reason any `json:"reason"`
	}
	if json.Unmarshal([]byte(arguments), &args) != nil {
		return ""
	}
	reason, _ := args.Reason.(string)
	return reason
}

// Envelope makes the packet of a round, to everyone.
func (r Routing) Envelope(channelID, sender, body string) (*envelope.Envelope, error) {
	b := &jsonbuf.Buffer{}
	b.Open('{').Key("routing")
	r.write(b)
	b.Key("context_updates").Open('{').Key("set").Object(nil).Key("delete").Strings(nil).Close('}')
	b.Key("body").String(body).Close('}')
	return build(channelID, sender, envelope.TypePacket, b, Address{})
}

func (r Routing) write(b *jsonbuf.Buffer) {
	b.Open('{').Key("kind").String(r.Kind)
	if r.Kind != KindText {
		b.Key("tool").String(r.Tool).Key("reason").String(r.Reason)
	}
	if r.Target != "" {
		b.Key("target").String(r.Target)
	}
	if r.Kind == KindFinish {
		b.Key("summary").String(r.Summary)
	}
	b.Close('}')
}
