package extending

import (
	"strconv"
	"testing"

	"pgregory.net/rapid"

	"github.com/parley-hub/parley/adapter/adaptertest"
	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
)

// board is the smallest adapter with a state: everyone may speak at any time,
// and after a hundred texts nobody may.
type board struct{}

const boardTexts = 100

func (board) Manifest() channel.Manifest {
	return channel.Manifest{Type: "board", Version: 1, Participants: channel.Bounds{Min: 1}, KnobsSchema: []byte(`{}`)}
}

func (board) Opening() channel.Opening               { return channel.AtOnce }
func (board) ValidateCreate(*channel.Metadata) error { return nil }

// The state is how many texts there are.
func (board) Initial(*channel.Metadata) (channel.State, error) { return 0, nil }

func (board) ValidateSend(_ *channel.Metadata, s channel.State, e *envelope.Envelope) error {
	if s == boardTexts && e.Type == envelope.TypeText {
		return fault.New(fault.Protocol, "the board is full: it has %d texts; open another", boardTexts)
	}
	return nil
}

func (board) Fold(s channel.State, e *envelope.Envelope) channel.State {
	if n, ok := s.(int); ok && e.Type == envelope.TypeText {
		return n + 1
	}
	return s
}

func (board) OnAccepted(*channel.Metadata, channel.State, *envelope.Envelope) channel.Effects {
	return channel.Effects{}
}

func (board) Expected(*channel.Metadata, channel.State) (channel.Turn, bool) {
	return channel.Turn{}, false
}

func (board) Recipients(m *channel.Metadata, _ channel.State, _ channel.Members, e *envelope.Envelope) []string {
	if e.Audience != nil {
		return append([]string{}, e.Audience...)
	}
	return m.Others(e.Sender)
}

func (board) Visible(_ *channel.Metadata, _ channel.State, _ channel.Members, e *envelope.Envelope, agent string) bool {
	return e.VisibleTo(agent)
}

func (board) Codec() channel.Codec {
	return channel.Codec{
		Version: 1,
		Encode:  func(s channel.State) ([]byte, error) { return strconv.AppendInt(nil, int64(s.(int)), 10), nil },
		Decode:  func(data []byte) (channel.State, error) { return strconv.Atoi(string(data)) },
	}
}

// Every adapter passes this suite.
func TestAdapter(t *testing.T) {
	t.Parallel()
	adaptertest.Exercise(t, adaptertest.Subject{
		Adapter:  board{},
		Metadata: func(*rapid.T) *channel.Metadata { return adaptertest.Metadata(board{}, `{}`, "alice", "bob") },
	})
}
