package branch

import (
	"time"

	"github.com/go-json-experiment/json"

	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/view/branch"
)

// State is what is known of a branch without reading its log. It is immutable.
type State struct {
	Session string `json:"session"`
	Branch  string `json:"branch"`

	Run *Run `json:"run,omitzero"`
	// Messages is how many messages the history projects to.
	Messages int64 `json:"messages"`
	// FirstText is the beginning of the first text of a user.
	FirstText string           `json:"first_text,omitzero"`
	Fields    branch.Fields    `json:"fields"`
	Fork      branch.ForkPoint `json:"fork,omitzero"`
	Created   time.Time        `json:"created"`
	Active    time.Time        `json:"active"` // when a run or message last began or ended
	// StateSeq is the sequence of the last committed middleware state; 0 is none.
	StateSeq uint64 `json:"state_seq,omitzero"`
	// Told is the checksum of the last tree fields in the branch's log.
	Told    string   `json:"told,omitzero"`
	Members []string `json:"members"`

	// Waiting is the input of a run that no producer has taken yet.
	Waiting *Waiting `json:"waiting,omitzero"`

	// The branch main folds the fields of the session from its side log.
	SessionInfo  *SessionInfo      `json:"session_info,omitzero"`
	SessionState map[string]string `json:"session_state,omitzero"` // of middleware
	Permissions  []Permission      `json:"permissions,omitzero"`

	count counter
	tasks []openTask
}

// Run is the active run.
type Run struct {
	ID      string    `json:"id"`
	AgentID string    `json:"agent_id"`        // as routes name it
	Agent   string    `json:"agent,omitzero"`  // the identity whose producer has it
	Remote  bool      `json:"remote,omitzero"` // the producer is in another process
	Started time.Time `json:"started"`
	Seq     uint64    `json:"seq"`           // sequence of its start
	By      string    `json:"by,omitzero"`   // the sender of the input
	Turn    string    `json:"turn,omitzero"` // the turn that was minted for it
	// TurnEnded is true if the end of the turn is in the log.
	TurnEnded bool `json:"turn_ended,omitzero"`
	// Interrupted is the reason of the interruption; empty: none.
	Interrupted string `json:"interrupted,omitzero"`
}

// codecVersion increases whenever the same log would fold to another state.
const codecVersion = 3

type plainState State // without methods

// stored is a state with the fields that only the fold needs.
type stored struct {
	plainState
	Recent  []uint64      `json:"recent,omitzero"`
	Next    int           `json:"next,omitzero"`
	Pending []pendingCall `json:"pending,omitzero"`
	User    string        `json:"user,omitzero"`
	Last    string        `json:"last,omitzero"`
	Tasks   []openTask    `json:"tasks,omitzero"`
}

// Codec writes the state as JSON.
func (*Adapter) Codec() channel.Codec {
	return channel.Codec{
		Version: codecVersion,
		Encode: func(s channel.State) ([]byte, error) {
			state, ok := s.(*State)
			if !ok {
				return nil, fault.New(fault.Internal, "%T is not the state of a branch", s)
			}
			out := stored{plainState: plainState(*state), Next: state.count.next, Pending: state.count.pending, User: state.count.user, Last: string(state.count.last), Tasks: state.tasks}
			for _, hash := range state.count.recent {
				if hash != 0 {
					out.Recent = state.count.recent[:]
				}
			}
			return json.Marshal(out, json.Deterministic(true))
		},
		Decode: func(data []byte) (channel.State, error) {
			var in stored
			if err := json.Unmarshal(data, &in); err != nil {
				return nil, fault.Wrap(fault.Invalid, err, "not a state of a branch: %v", err)
			}
			if len(in.Recent) > recentIDs || in.Next < 0 || in.Next >= recentIDs || len(in.Pending) > pendingCalls || len(in.Tasks) > openTasks {
				return nil, fault.New(fault.Invalid, "not a state of a branch: its counter is out of bounds")
			}
			state := State(in.plainState)
			state.tasks = in.Tasks
			copy(state.count.recent[:], in.Recent)
			state.count.next, state.count.pending, state.count.user = in.Next, in.Pending, in.User
			if in.Last != "" {
				state.count.last = []byte(in.Last)
			}
			return &state, nil
		},
	}
}
