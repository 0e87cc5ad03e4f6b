package consulting_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/parley-hub/parley/adapter/adaptertest"
	"github.com/parley-hub/parley/adapter/consulting"
	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/conformance/spec"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
)

var adapter = consulting.Adapter{}

func open(t *spec.T) *adaptertest.Play {
	t.Helper()
	p, err := adaptertest.Open(adapter, adaptertest.Metadata(adapter, "", "ines", "otto"))
	t.NoError(err)
	return p
}

func TestLaws(t *testing.T) {
	t.Parallel()
	adaptertest.Exercise(t, adaptertest.Subject{
		Adapter: adapter,
		Metadata: func(*rapid.T) *channel.Metadata {
			return adaptertest.Metadata(adapter, `{"capability":"ocr"}`, "ines", "otto")
		},
	})
}

func TestManifest(t *testing.T) {
	t.Parallel()
	manifest := adapter.Manifest()
	got, err := manifest.AppendJSON(nil)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"type":"consulting","version":1,"participants":{"min":2,"max":2,"roles":["initiator","respondent"]},` +
		`"knobs_schema":{},"default_view_policy":"full_transcript","expectations":[` +
		`{"name":"acks_within","on_violation":"auto_close","params":{"seconds":30},"applies_to":null},` +
		`{"name":"reply_within","on_violation":"auto_close","params":{"seconds":600},"applies_to":null}]}`
	if string(got) != want {
		t.Fatalf("got  %s\nwant %s", got, want)
	}
	if adapter.Opening() != channel.ByInvitation {
		t.Fatal("does not open by invitation")
	}
}

func TestCreate(t *testing.T) {
	t.Parallel()
	spec.Check(t, "ag2-channels#7: three participants are refused: exactly 2", func(t *spec.T) {
		m := adaptertest.Metadata(adapter, "", "ines", "otto", "mira")
		m.Participants[1].Role = channel.Respondent
		err := adapter.ValidateCreate(m)
		t.ErrorContains(err, "exactly 2", "not 3", "consulting")
		t.Equal(fault.CodeOf(err), fault.Protocol)
	})
	spec.Check(t, "ag2-channels#8: two without a respondent are refused", func(t *spec.T) {
		m := adaptertest.Metadata(adapter, "", "ines", "otto")
		m.Participants[1].Role = channel.Member
		err := adapter.ValidateCreate(m)
		t.ErrorContains(err, "exactly one respondent")
		t.Equal(fault.CodeOf(err), fault.Protocol)
	})
	t.Run("the initiator is missed first", func(t *testing.T) {
		t.Parallel()
		m := adaptertest.Metadata(adapter, "", "ines", "otto", "mira")
		m.Participants[0].Role = channel.Member
		(&spec.T{T: t}).ErrorContains(adapter.ValidateCreate(m), "exactly one initiator")
	})
	t.Run("three as the hub makes them fail on the respondent", func(t *testing.T) {
		t.Parallel()
		m := adaptertest.Metadata(adapter, "", "ines", "otto", "mira")
		(&spec.T{T: t}).ErrorContains(adapter.ValidateCreate(m), "exactly one respondent")
	})
}

func TestTurns(t *testing.T) {
	t.Parallel()
	spec.Check(t, "seed-000#24: consulting folds texts", func(t *spec.T) {
		p := open(t)
		t.Equal(p.JSON(), `{"initiator_sent":false,"respondent_replied":false,"last_envelope_id":null}`)
		t.NoError(p.Say("ines"))
		t.Equal(p.JSON(), `{"initiator_sent":true,"respondent_replied":false,"last_envelope_id":"00000000000000000000000000000001"}`)
		t.Equal(p.Closed, "")
		t.NoError(p.Say("otto"))
		t.Equal(p.JSON(), `{"initiator_sent":true,"respondent_replied":true,"last_envelope_id":"00000000000000000000000000000002"}`)
		t.Equal(p.Closed, "consulting_complete")
	})
	spec.Check(t, "ag2-channels#11: a third text when both flags are set", func(t *spec.T) {
		p := open(t)
		t.NoError(p.Say("ines", "otto"))
		for _, sender := range []string{"ines", "otto", "eve"} {
			err := adapter.ValidateSend(p.Meta, p.State, adaptertest.Text(sender, "x"))
			t.ErrorContains(err, "already complete")
			t.Equal(fault.CodeOf(err), fault.Protocol)
		}
	})
	spec.Check(t, "ag2-channels#13: two replays of one log fold to what it was", func(t *spec.T) {
		p := open(t)
		states := []string{p.JSON()}
		for _, sender := range []string{"ines", "otto"} {
			t.NoError(p.Say(sender))
			states = append(states, p.JSON())
		}
		for range 2 {
			for n, want := range states {
				s, err := adaptertest.Replay(consulting.Adapter{}, p.Meta, p.Log[:n])
				t.NoError(err)
				t.Equal(adaptertest.StateJSON(adapter, s), want)
			}
		}
	})
	spec.Check(t, "ag2-channels#12: on_accepted returns closed, not closing", func(t *spec.T) {
		p := open(t)
		t.NoError(p.Say("ines", "otto"))
		t.Equal(adapter.OnAccepted(p.Meta, p.State, p.Log[1]), channel.Effects{Next: channel.Closed, Reason: "consulting_complete"})
	})
	spec.Check(t, "ag2-channels#15: task envelopes do not close the consultation", func(t *spec.T) {
		p := open(t)
		t.NoError(p.Say("ines"))
		before := p.JSON()
		for _, eventType := range []string{envelope.TypeTaskStarted, envelope.TypeTaskProgress, envelope.TypeTaskCompleted} {
			t.NoError(p.Post(adaptertest.Envelope("otto", eventType, `{"task_id":"t"}`)))
		}
		t.Equal(p.Closed, "")
		t.Equal(p.JSON(), before)
		t.NoError(p.Say("otto"))
		t.Equal(p.Closed, "consulting_complete")
	})
	spec.Check(t, "seed-000#25: a packet is no turn of a consultation", func(t *spec.T) {
		p := open(t)
		before := p.JSON()
		t.NoError(p.Post(adaptertest.Envelope("otto", envelope.TypePacket, `{"body":"hi"}`)))
		t.Equal(p.JSON(), before)
		t.Equal(adapter.Recipients(p.Meta, p.State, p.Meta.Members(), p.Log[0]), []string{"ines"})
	})
	t.Run("refusals", func(t *testing.T) {
		t.Parallel()
		for name, test := range map[string]struct {
			said   []string
			sender string
			want   string
		}{
			"the respondent first": {nil, "otto", "expects first send from initiator 'ines'"},
			"a stranger first":     {nil, "eve", "expects first send from initiator 'ines'"},
			"the initiator twice":  {[]string{"ines"}, "ines", "expects reply from respondent 'otto'"},
			"a stranger's reply":   {[]string{"ines"}, "eve", "expects reply from respondent 'otto'"},
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				c := &spec.T{T: t}
				p := open(c)
				c.NoError(p.Say(test.said...))
				err := adapter.ValidateSend(p.Meta, p.State, adaptertest.Text(test.sender, "x"))
				c.ErrorContains(err, test.want)
				c.Equal(fault.CodeOf(err), fault.Protocol)
			})
		}
	})
	t.Run("the fold does not look at the sender", func(t *testing.T) {
		t.Parallel()
		c := &spec.T{T: t}
		p := open(c)
		for i, id := range []string{"a", "b", "c"} {
			e := adaptertest.Text("eve", "x")
			e.ID = id
			p.State = adapter.Fold(p.State, e)
			want := &consulting.State{Asked: true, Replied: i > 0, LastEnvelope: []string{"a", "b", "b"}[i]}
			c.Equal(p.State, want)
		}
	})
}

func TestExpected(t *testing.T) {
	t.Parallel()
	c := &spec.T{T: t}
	p := open(c)
	type expected struct {
		Turn  channel.Turn
		Known bool
	}
	check := func(want expected) {
		t.Helper()
		turn, ok := adapter.Expected(p.Meta, p.State)
		c.Equal(expected{turn, ok}, want)
	}
	check(expected{channel.Turn{Agent: "ines"}, true})
	c.NoError(p.Say("ines"))
	check(expected{channel.Turn{Agent: "otto", Trigger: p.Log[0].ID}, true})
	c.NoError(p.Say("otto"))
	check(expected{})
}

func TestAgentSide(t *testing.T) {
	t.Parallel()
	spec.Check(t, "ag2-channels#94: consulting offers say to the turn holder", func(t *spec.T) {
		p := open(t)
		t.Equal(adapter.Tools(p.Meta, p.State, "ines"), []string{"say"})
		t.Equal(adapter.Tools(p.Meta, p.State, "otto"), []string(nil))
		t.NoError(p.Say("ines"))
		t.Equal(adapter.Tools(p.Meta, p.State, "ines"), []string(nil))
		t.Equal(adapter.Tools(p.Meta, p.State, "otto"), []string{"say"})
		t.NoError(p.Say("otto"))
		t.Equal(adapter.Tools(p.Meta, p.State, "ines"), []string(nil))
		t.Equal(adapter.Tools(p.Meta, p.State, "otto"), []string(nil))
	})
	spec.Check(t, "ag2-channels#109: consulting reads in full", func(t *spec.T) {
		p := open(t)
		t.Equal(adapter.View(p.Meta, "ines").Name(), "full_transcript")
	})
}

func FuzzState(f *testing.F) {
	f.Add([]byte(`{"initiator_sent":true,"respondent_replied":false,"last_envelope_id":"a"}`))
	f.Add([]byte(`{"last_envelope_id":null}`))
	f.Fuzz(func(t *testing.T, data []byte) { adaptertest.FuzzState(t, adapter, data) })
}
