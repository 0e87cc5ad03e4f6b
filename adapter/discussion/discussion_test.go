package discussion_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/parley-hub/parley/adapter/adaptertest"
	"github.com/parley-hub/parley/adapter/discussion"
	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/conformance/spec"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/view"
)

var adapter = discussion.Adapter{}

func open(t *spec.T, knobs string, participants ...string) *adaptertest.Play {
	t.Helper()
	p, err := adaptertest.Open(adapter, adaptertest.Metadata(adapter, knobs, participants...))
	t.NoError(err)
	return p
}

func TestLaws(t *testing.T) {
	t.Parallel()
	adaptertest.Exercise(t, adaptertest.Subject{
		Adapter: adapter,
		Metadata: func(t *rapid.T) *channel.Metadata {
			n := rapid.IntRange(2, 5).Draw(t, "participants")
			return adaptertest.Metadata(adapter, `{"ordering":"round_robin"}`, []string{"a", "b", "c", "d", "e"}[:n]...)
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
	want := `{"type":"discussion","version":1,"participants":{"min":2,"max":null,"roles":[]},` +
		`"knobs_schema":{"ordering":"str"},"default_view_policy":"named_windowed_summary","expectations":[` +
		`{"name":"turn_within","on_violation":"warn","params":{"seconds":120},"applies_to":null},` +
		`{"name":"turn_within","on_violation":"hide","params":{"seconds":600},"applies_to":null}]}`
	if string(got) != want {
		t.Fatalf("got  %s\nwant %s", got, want)
	}
}

func TestCreate(t *testing.T) {
	t.Parallel()
	for _, ordering := range []string{"dynamic", "weighted"} {
		spec.Check(t, "ag2-channels#23: no ordering "+ordering, func(t *spec.T) {
			err := adapter.ValidateCreate(adaptertest.Metadata(adapter, `{"ordering":"`+ordering+`"}`, "a", "b"))
			t.ErrorContains(err, "ordering", ordering, "'round_robin'")
			t.Equal(fault.CodeOf(err), fault.Protocol)
		})
	}
	spec.Check(t, "ag2-channels#23: single participant", func(t *spec.T) {
		err := adapter.ValidateCreate(adaptertest.Metadata(adapter, `{"ordering":"dynamic"}`, "a"))
		t.ErrorContains(err, "at least 2 participants")
		t.Equal(fault.CodeOf(err), fault.Protocol)
	})
	t.Run("orderings of other types", func(t *testing.T) {
		t.Parallel()
		for _, knobs := range []string{`{"ordering":null}`, `{"ordering":5}`, `{"ordering":["round_robin"]}`, `{"ordering":"static"}`} {
			(&spec.T{T: t}).ErrorContains(adapter.ValidateCreate(adaptertest.Metadata(adapter, knobs, "a", "b")), "ordering")
		}
	})
	t.Run("other knobs are kept", func(t *testing.T) {
		t.Parallel()
		(&spec.T{T: t}).NoError(adapter.ValidateCreate(adaptertest.Metadata(adapter, `{"topic":"lunch"}`, "a", "b")))
	})
}

func TestTurns(t *testing.T) {
	t.Parallel()
	spec.Check(t, "ag2-channels#25 seed-000#24: turns rotate and are counted", func(t *spec.T) {
		p := open(t, "", "a", "b", "c")
		t.Equal(p.JSON(), `{"participant_order":["a","b","c"],"expected_next_speaker":"a","last_speaker_id":null,"last_envelope_id":null,"turn_count":0}`)
		order := []string{"a", "b", "c"}
		for i, sender := range order {
			turn, _ := adapter.Expected(p.Meta, p.State)
			t.Equal(turn.Agent, sender)
			t.NoError(p.Say(sender))
			t.Equal(p.State, &discussion.State{
				Order: order, Next: order[(i+1)%3], LastSpeaker: sender, LastEnvelope: p.Log[i].ID, Turns: i + 1,
			})
		}
		t.Equal(p.JSON(), `{"participant_order":["a","b","c"],"expected_next_speaker":"a","last_speaker_id":"c","last_envelope_id":"00000000000000000000000000000003","turn_count":3}`)
		t.Equal(p.Closed, "")
	})
	t.Run("out of turn", func(t *testing.T) {
		t.Parallel()
		c := &spec.T{T: t}
		p := open(c, "", "a", "b", "c")
		for _, sender := range []string{"b", "c", "eve"} {
			err := p.Say(sender)
			c.ErrorContains(err, "expects 'a' to speak", "'"+sender+"'")
			c.Equal(fault.CodeOf(err), fault.Protocol)
		}
		c.NoError(p.Say("a"))
		c.ErrorContains(p.Say("a"), "expects 'b' to speak")
	})
	spec.Check(t, "ag2-channels#26: a sender outside the order changes nothing", func(t *spec.T) {
		p := open(t, "", "a", "b")
		t.NoError(p.Say("a"))
		t.True(adapter.Fold(p.State, adaptertest.Text("eve", "x")) == p.State, "a stranger's text leaves the state")
	})
	spec.Check(t, "seed-000#25: a packet is no turn of a discussion", func(t *spec.T) {
		p := open(t, "", "a", "b", "c")
		before := p.JSON()
		t.NoError(p.Post(adaptertest.Envelope("b", envelope.TypePacket, `{"body":"hi"}`)))
		t.Equal(p.JSON(), before)
		t.Equal(adapter.Recipients(p.Meta, p.State, p.Meta.Members(), p.Log[0]), []string{"a", "c"})
	})
	t.Run("the creator speaks first wherever it stands", func(t *testing.T) {
		t.Parallel()
		c := &spec.T{T: t}
		m := adaptertest.Metadata(adapter, "", "b", "creator", "c")
		m.Creator = "creator"
		p, err := adaptertest.Open(adapter, m)
		c.NoError(err)
		c.NoError(p.Say("creator", "c", "b", "creator"))
		c.Equal(p.State.(*discussion.State).Next, "c")
	})
	t.Run("who is expected, and by which envelope", func(t *testing.T) {
		t.Parallel()
		c := &spec.T{T: t}
		p := open(c, "", "a", "b")
		turn, ok := adapter.Expected(p.Meta, p.State)
		c.Equal(turn, channel.Turn{Agent: "a"})
		c.True(ok, "someone is expected")
		c.NoError(p.Say("a"))
		turn, _ = adapter.Expected(p.Meta, p.State)
		c.Equal(turn, channel.Turn{Agent: "b", Trigger: p.Log[0].ID})
	})
}

func TestAgentSide(t *testing.T) {
	t.Parallel()
	spec.Check(t, "ag2-channels#94: discussion offers no say", func(t *spec.T) {
		p := open(t, "", "a", "b")
		t.Equal(adapter.Tools(p.Meta, p.State, "a"), []string(nil))
		t.Equal(adapter.Tools(p.Meta, p.State, "b"), []string(nil))
	})
	spec.Check(t, "ag2-channels#109: discussion reads through a named window", func(t *spec.T) {
		for n, recent := range map[int]int{2: 4, 3: 6, 5: 10} {
			want, err := view.NamedWindowed(recent)
			t.NoError(err)
			p := open(t, "", []string{"a", "b", "c", "d", "e"}[:n]...)
			t.True(adapter.View(p.Meta, "a") == view.View(want), "two messages for each of %d", n)
			t.Equal(adapter.View(p.Meta, "a").Name(), "named_windowed_summary")
		}
	})
}

func FuzzState(f *testing.F) {
	f.Add([]byte(`{"participant_order":["a","b"],"expected_next_speaker":"b","last_speaker_id":"a","last_envelope_id":"e","turn_count":1}`))
	f.Add([]byte(`{"participant_order":null}`))
	f.Fuzz(func(t *testing.T, data []byte) { adaptertest.FuzzState(t, adapter, data) })
}
