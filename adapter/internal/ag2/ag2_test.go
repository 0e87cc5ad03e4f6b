package ag2_test

import (
	"testing"

	"github.com/parley-hub/parley/adapter/internal/ag2"
	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/conformance/spec"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/internal/jsonbuf"
)

func members(roles ...channel.Role) *channel.Metadata {
	m := &channel.Metadata{Manifest: &channel.Manifest{Type: "talk"}}
	for i, role := range roles {
		m.Participants = append(m.Participants, channel.Participant{Agent: string(rune('a' + i)), Role: role, Order: i})
	}
	return m
}

func TestParties(t *testing.T) {
	t.Parallel()
	c := &spec.T{T: t}
	const in, re, me = channel.Initiator, channel.Respondent, channel.Member
	c.NoError(ag2.TwoParties(members(in, re)))
	for fragment, m := range map[string]*channel.Metadata{
		"talk needs exactly one initiator":                                                   members(re, me),
		"talk needs exactly one respondent":                                                  members(in, me),
		"talk takes exactly 2 participants, not 3":                                           members(in, re, me),
		"talk needs exactly one initiator; 0 participants were given":                        members(),
		"talk needs exactly one respondent besides the initiator; 1 participants were given": members(in),
	} {
		err := ag2.TwoParties(m)
		c.ErrorContains(err, fragment)
		c.Equal(fault.CodeOf(err), fault.Protocol)
	}
	c.NoError(ag2.SeveralParties(members(in, re)))
	c.NoError(ag2.SeveralParties(members(in, me, me)))
	c.ErrorContains(ag2.SeveralParties(members(in)), "talk takes at least 2 participants, not 1")
	agent, ok := ag2.WithRole(members(in, me, me), me)
	c.Equal(agent, "b")
	c.True(ok, "someone has the role")
	_, ok = ag2.WithRole(members(in), re)
	c.False(ok, "someone has the role")
	c.Equal(ag2.GroupView(members(in, me, me)).Name(), "named_windowed_summary")
}

func TestCommon(t *testing.T) {
	t.Parallel()
	c := &spec.T{T: t}
	m := members(channel.Initiator, channel.Member, channel.Member)
	e := &envelope.Envelope{Sender: "b"}
	c.Equal(ag2.Common{}.Opening(), channel.ByInvitation)
	c.Equal(ag2.Common{}.Recipients(m, nil, m.Members(), e), []string{"a", "c"})
	e.Audience = []string{"c", "b", "stranger"}
	got := ag2.Common{}.Recipients(m, nil, m.Members(), e)
	c.Equal(got, []string{"c", "b", "stranger"})
	got[0] = "changed"
	c.Equal(e.Audience, []string{"c", "b", "stranger"})
	e.Audience = []string{}
	c.Equal(ag2.Common{}.Recipients(m, nil, m.Members(), e), []string{})
	c.True(ag2.Common{}.Visible(m, nil, m.Members(), e, "b"), "the sender sees its own")
	c.False(ag2.Common{}.Visible(m, nil, m.Members(), e, "a"), "nobody else does")
}

func TestKnob(t *testing.T) {
	t.Parallel()
	c := &spec.T{T: t}
	knob := func(knobs, name string) string {
		value, err := ag2.Knob(&channel.Metadata{Knobs: []byte(knobs)}, name)
		c.NoError(err)
		return string(value)
	}
	c.Equal(knob(``, "x"), "")
	c.Equal(knob(`{"y":1}`, "x"), "")
	c.Equal(knob(`{"x":null}`, "x"), "null")
	c.Equal(knob(`{"x": {"a" : 1.0} }`, "x"), `{"a" : 1.0}`)
	_, err := ag2.Knob(&channel.Metadata{Knobs: []byte(`[]`)}, "x")
	c.ErrorContains(err, "knobs are a JSON object")
	c.Equal(fault.CodeOf(err), fault.Protocol)
}

func TestCodec(t *testing.T) {
	t.Parallel()
	c := &spec.T{T: t}
	type state struct{ n int }
	codec := ag2.Codec(7, func(s *state, b *jsonbuf.Buffer) { b.Int(s.n) }, func(data []byte) (*state, error) {
		if string(data) != "1" {
			return nil, fault.New(fault.Invalid, "not one")
		}
		return &state{1}, nil
	})
	c.Equal(codec.Version, 7)
	text, err := codec.Encode(&state{1})
	c.NoError(err)
	c.Equal(string(text), "1")
	for _, wrong := range []channel.State{nil, "text", (*state)(nil), state{1}} {
		_, err := codec.Encode(wrong)
		c.ErrorContains(err, "is not a state of this adapter")
	}
	s, err := codec.Decode([]byte("1"))
	c.NoError(err)
	c.True(s.(*state).n == 1, "it reads what it wrote")
	_, err = codec.Decode([]byte("2"))
	c.ErrorContains(err, "adapter: state: not one")
}
