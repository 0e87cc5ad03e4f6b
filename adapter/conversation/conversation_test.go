package conversation_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/parley-hub/parley/adapter/adaptertest"
	"github.com/parley-hub/parley/adapter/conversation"
	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/conformance/spec"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/view"
)

var adapter = conversation.Adapter{}

func open(t *spec.T) *adaptertest.Play {
	t.Helper()
	p, err := adaptertest.Open(adapter, adaptertest.Metadata(adapter, "", "ines", "otto"))
	t.NoError(err)
	return p
}

func TestLaws(t *testing.T) {
	t.Parallel()
	adaptertest.Exercise(t, adaptertest.Subject{
		Adapter:  adapter,
		Metadata: func(*rapid.T) *channel.Metadata { return adaptertest.Metadata(adapter, "", "ines", "otto") },
	})
}

func TestManifest(t *testing.T) {
	t.Parallel()
	manifest := adapter.Manifest()
	got, err := manifest.AppendJSON(nil)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"type":"conversation","version":1,"participants":{"min":2,"max":2,"roles":["initiator","respondent"]},` +
		`"knobs_schema":{},"default_view_policy":"windowed_summary","expectations":[` +
		`{"name":"max_silence","on_violation":"audit","params":{"seconds":3600},"applies_to":null}]}`
	if string(got) != want {
		t.Fatalf("got  %s\nwant %s", got, want)
	}
}

func TestCreate(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		roles []channel.Role
		want  string
	}{
		"no initiator":         {[]channel.Role{channel.Member, channel.Respondent}, "conversation needs exactly one initiator"},
		"no respondent":        {[]channel.Role{channel.Initiator, channel.Member}, "conversation needs exactly one respondent"},
		"one too many":         {[]channel.Role{channel.Initiator, channel.Respondent, channel.Member}, "conversation takes exactly 2 participants, not 3"},
		"neither, named first": {[]channel.Role{channel.Member, channel.Member}, "exactly one initiator"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := &spec.T{T: t}
			m := adaptertest.Metadata(adapter, "", []string{"a", "b", "c"}[:len(test.roles)]...)
			for i, role := range test.roles {
				m.Participants[i].Role = role
			}
			err := adapter.ValidateCreate(m)
			c.ErrorContains(err, test.want)
			c.Equal(fault.CodeOf(err), fault.Protocol)
		})
	}
}

func TestTurns(t *testing.T) {
	t.Parallel()
	spec.Check(t, "ag2-channels#16: only participants may send", func(t *spec.T) {
		p := open(t)
		err := p.Say("eve")
		t.ErrorContains(err, "only accepts sends from participants", "'eve'")
		t.Equal(fault.CodeOf(err), fault.Protocol)
		t.Equal(p.JSON(), `{"turn_count":0,"last_speaker_id":null,"last_envelope_id":null}`)
	})
	spec.Check(t, "ag2-channels#17 seed-000#24: either side may send twice; each text increments turn_count", func(t *spec.T) {
		p := open(t)
		for i, sender := range []string{"ines", "ines", "otto", "otto", "ines"} {
			t.NoError(p.Say(sender))
			t.Equal(p.State, &conversation.State{Turns: i + 1, LastSpeaker: sender, LastEnvelope: p.Log[i].ID})
		}
		t.Equal(p.Closed, "")
		t.Equal(p.JSON(), `{"turn_count":5,"last_speaker_id":"ines","last_envelope_id":"00000000000000000000000000000005"}`)
	})
	spec.Check(t, "ag2-channels#18: opened envelope leaves the state unchanged", func(t *spec.T) {
		p := open(t)
		t.NoError(p.Say("ines"))
		before := p.State
		for _, eventType := range []string{
			envelope.TypeInvite, envelope.TypeInviteAck, envelope.TypeInviteReject,
			envelope.TypeOpened, envelope.TypeClosed, envelope.TypeExpired, "app.unknown",
		} {
			t.True(adapter.Fold(p.State, adaptertest.Envelope("ines", eventType, `{}`)) == before, "%s leaves the state", eventType)
		}
	})
	spec.Check(t, "seed-000#25: a packet is no turn of a conversation", func(t *spec.T) {
		p := open(t)
		t.NoError(p.Post(adaptertest.Envelope("otto", envelope.TypePacket, `{"body":"hi"}`)))
		t.Equal(p.State, &conversation.State{})
		t.Equal(adapter.Recipients(p.Meta, p.State, p.Meta.Members(), p.Log[0]), []string{"ines"})
	})
	t.Run("nobody is ever expected", func(t *testing.T) {
		t.Parallel()
		c := &spec.T{T: t}
		p := open(c)
		c.NoError(p.Say("ines"))
		_, ok := adapter.Expected(p.Meta, p.State)
		c.False(ok, "someone is expected")
	})
}

func TestAgentSide(t *testing.T) {
	t.Parallel()
	spec.Check(t, "ag2-channels#94: conversation offers say to both", func(t *spec.T) {
		p := open(t)
		t.NoError(p.Say("ines"))
		for _, agent := range []string{"ines", "otto"} {
			t.Equal(adapter.Tools(p.Meta, p.State, agent), []string{"say"})
		}
	})
	spec.Check(t, "ag2-channels#109: conversation reads through a window without names", func(t *spec.T) {
		p := open(t)
		want, err := view.Windowed(10)
		t.NoError(err)
		t.True(adapter.View(p.Meta, "ines") == view.View(want), "the last ten, unnamed")
		t.Equal(adapter.View(p.Meta, "ines").Name(), "windowed_summary")
	})
}

func FuzzState(f *testing.F) {
	f.Add([]byte(`{"turn_count":3,"last_speaker_id":"a","last_envelope_id":"e"}`))
	f.Add([]byte(`{"turn_count":-1}`))
	f.Fuzz(func(t *testing.T, data []byte) { adaptertest.FuzzState(t, adapter, data) })
}
