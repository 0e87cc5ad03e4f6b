// Package branch governs the channels that are branches of an HPD session. Their
// history holds HPD events and nothing else, because an event's number is its place
// in the log. The adapter folds the active run, counts and fields in constant time;
// messages are not part of the state: package view/branch projects them. It is
// pure.
package branch

import (
	"slices"

	"github.com/go-json-experiment/json"

	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/view/branch"
)

// Type is the name under which the adapter is registered.
const Type = "branch"

// DefaultRecord is how many bytes a branch's four fields may have together.
const DefaultRecord = 64 << 10

// Options configure the adapter. The zero value has the built-in events.
type Options struct {
	// Table sets what is stored; nil is the built-in types.
	Table *branch.Table
	// Record bounds a branch's name, description, tags and metadata together;
	// 0 is DefaultRecord.
	Record int
}

// Adapter is stateless: its fields are fixed when it is created.
type Adapter struct {
	table  *branch.Table
	record int
}

// New returns an adapter.
func New(o Options) *Adapter {
	if o.Table == nil {
		o.Table = branch.NewTable()
	}
	if o.Record <= 0 {
		o.Record = DefaultRecord
	}
	return &Adapter{table: o.Table, record: o.Record}
}

// Knobs are the parameters of a branch's creation: the names that clients use.
type Knobs struct {
	Session string `json:"session"`
	Branch  string `json:"branch"`
}

// Bytes returns the form in a channel's metadata.
func (k Knobs) Bytes() []byte {
	data, err := json.Marshal(k)
	if err != nil {
		return nil // ids were checked before
	}
	return data
}

// ParseKnobs reads the names of a branch.
func ParseKnobs(m *channel.Metadata) (Knobs, error) {
	var k Knobs
	if err := json.Unmarshal(m.Knobs, &k); err != nil || k.Session == "" || k.Branch == "" {
		return Knobs{}, fault.New(fault.Protocol, "a branch is opened with the knobs `session` and `branch`; HPD's routes open it")
	}
	return k, nil
}

var manifest = channel.Manifest{Type: Type, Version: 1, Participants: channel.Bounds{Min: 0}, DefaultView: "full_transcript"}

// Manifest returns a constant.
func (*Adapter) Manifest() channel.Manifest { return manifest }

// Dialect returns the dialect that opens branches and shows them.
func (*Adapter) Dialect() string { return "hpd" }

// Opening returns AtOnce: no participant has to accept.
func (*Adapter) Opening() channel.Opening { return channel.AtOnce }

// ValidateCreate requires the names of the session and the branch.
func (*Adapter) ValidateCreate(m *channel.Metadata) error {
	_, err := ParseKnobs(m)
	return err
}

// Initial returns the state of an empty branch.
func (*Adapter) Initial(m *channel.Metadata) (channel.State, error) {
	k, err := ParseKnobs(m)
	if err != nil {
		return nil, err
	}
	s := &State{Session: k.Session, Branch: k.Branch, Created: m.CreatedAt, Active: m.CreatedAt}
	if m.Creator != "" {
		s.Members = []string{m.Creator}
	}
	return s, nil
}

// Expected returns no speaker: the producer of the active run speaks, and there are
// no turns.
func (*Adapter) Expected(*channel.Metadata, channel.State) (channel.Turn, bool) {
	return channel.Turn{}, false
}

// notified lists the types of events that finish something. Clients of other
// dialects do not follow branches, so these events are delivered to them.
var notified = map[string]bool{
	branch.LogType(branch.BranchRunStarted): true, branch.LogType(branch.BranchRunCompleted): true,
	branch.LogType(branch.TextMessageEnd): true, branch.LogType(branch.MessageCompleted): true,
	branch.LogType(branch.ContentAdded): true, branch.LogType(branch.MessageTurnError): true,
}

// Recipients returns the members if the event finishes a message or a run.
// HPD's own clients follow branches instead: nothing is delivered to them.
func (*Adapter) Recipients(_ *channel.Metadata, s channel.State, _ channel.Members, e *envelope.Envelope) []string {
	state, ok := s.(*State)
	if !ok || !notified[e.Type] {
		return nil
	}
	return state.Members
}

// Visible reports whether an agent is a member; members read everything. The
// dialect decides for the whole session what other readers may see.
func (*Adapter) Visible(_ *channel.Metadata, _ channel.State, in channel.Members, _ *envelope.Envelope, agent string) bool {
	return in.Has(agent)
}

// Members returns the creator, the senders of inputs, and each run's agent.
func (*Adapter) Members(m *channel.Metadata, s channel.State) channel.Members {
	state, ok := s.(*State)
	if !ok {
		return m.Members()
	}
	return members{state}
}

// members holds one pointer, so that creating it allocates nothing. States never
// change.
type members struct{ state *State }

func (m members) Has(agent string) bool { return slices.Contains(m.state.Members, agent) }
func (m members) Count() int            { return len(m.state.Members) }
func (m members) Each(yield func(agent string) bool) {
	for _, agent := range m.state.Members {
		if !yield(agent) {
			return
		}
	}
}

// Admits accepts every sender: posting an input makes its sender a member, and
// ValidateSend refuses an event without the dialect's mark or its run.
func (*Adapter) Admits(*channel.Metadata, channel.State, channel.Members, string) bool { return true }
