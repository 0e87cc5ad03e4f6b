package transcript

import (
	"fmt"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/envelope"
)

// Prefixes of index keys. Sessions are listed by the time of their creation, and
// found by their id among those of all owners.
const (
	IndexSession = "session/"
	IndexListed  = "listed/"
	IndexRun     = "run/"
	IndexOpen    = "open/"
)

// Listed has the fields by which a list of sessions is filtered.
type Listed struct {
	Session string    `json:"session_id"`
	Agent   string    `json:"agent,omitzero"`
	Context string    `json:"context"`
	Created time.Time `json:"created"`
}

// RunPlace holds the sequences of a run's records.
type RunPlace struct {
	Started uint64 `json:"started"`
	Ended   uint64 `json:"ended,omitzero"`
}

// ListKey returns a key that sorts sessions by age and then by id, which increases
// with time.
func ListKey(created time.Time, channelID string) string {
	return fmt.Sprintf("%s%016x/%s", IndexListed, created.UnixNano(), channelID)
}

// OnAccepted updates the index of sessions and runs.
func (*Adapter) OnAccepted(m *channel.Metadata, s channel.State, e *envelope.Envelope) channel.Effects {
	state, ok := s.(*State)
	if !ok || !marked(e) {
		return channel.Effects{}
	}
	switch e.Type {
	case TypeCreated:
		k, err := ParseKnobs(m)
		if err != nil {
			return channel.Effects{}
		}
		value := encode(Listed{Session: m.Name, Agent: k.Agent, Context: k.Context, Created: m.CreatedAt})
		return channel.Effects{Index: []channel.IndexEntry{
			{Key: IndexSession + m.Name, Value: value, All: true},
			{Key: ListKey(m.CreatedAt, m.ID), Value: value},
		}}
	case TypeStarted:
		if state.Run == nil {
			return channel.Effects{}
		}
		value := encode(RunPlace{Started: e.Seq})
		return channel.Effects{Index: []channel.IndexEntry{
			{Key: IndexRun + state.Run.ID, Value: value},
			{Key: IndexOpen + m.ID, Value: value, All: true},
		}}
	case TypeEnded:
		var r Ended
		if json.Unmarshal(e.Data, &r) != nil {
			return channel.Effects{}
		}
		return channel.Effects{
			Index:   []channel.IndexEntry{{Key: IndexRun + r.Run, Value: encode(RunPlace{Started: r.Began, Ended: e.Seq})}},
			Unindex: []string{IndexOpen + m.ID},
		}
	}
	return channel.Effects{}
}

func encode(v any) []byte {
	data, err := json.Marshal(v)
	if err != nil {
		return nil // texts that were read as JSON can be encoded
	}
	return data
}
