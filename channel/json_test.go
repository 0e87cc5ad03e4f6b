package channel_test

import (
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/parley-hub/parley/channel"
)

var epoch = time.Date(2026, 3, 9, 10, 15, 42, 8113000, time.UTC)

func sample() *channel.Metadata {
	return &channel.Metadata{
		ID: "18a0c510",
		Manifest: &channel.Manifest{
			Type: "conversation", Version: 1,
			Participants: channel.Bounds{Min: 2, Max: new(2), Roles: []channel.Role{channel.Initiator, channel.Respondent}},
			DefaultView:  "windowed_summary",
			Expectations: []channel.Expectation{{Name: "max_silence", OnViolation: "audit", Params: []byte(`{"seconds": 3600.50}`)}},
		},
		Creator: "agt-a",
		Participants: []channel.Participant{
			{Agent: "agt-a", Role: channel.Initiator, JoinedAt: epoch},
			{Agent: "agt-b", Role: channel.Respondent, Order: 1, JoinedAt: epoch},
		},
		State: channel.Active, CreatedAt: epoch, ExpiresAt: epoch.Add(2 * time.Hour),
		Knobs:  []byte(`{ "graph" : {"n":9007199254740993, "f":1.50} }`),
		Labels: map[string]string{"z": "1", "intent": "triage"},
	}
}

const sampleJSON = `{"channel_id":"18a0c510","manifest":{"type":"conversation","version":1,` +
	`"participants":{"min":2,"max":2,"roles":["initiator","respondent"]},"knobs_schema":{},"default_view_policy":"windowed_summary",` +
	`"expectations":[{"name":"max_silence","on_violation":"audit","params":{"seconds": 3600.50},"applies_to":null}]},` +
	`"creator_id":"agt-a","participants":[{"agent_id":"agt-a","role":"initiator","order":0,"joined_at":"2026-03-09T10:15:42.008113Z"},` +
	`{"agent_id":"agt-b","role":"respondent","order":1,"joined_at":"2026-03-09T10:15:42.008113Z"}],` +
	`"state":"active","created_at":"2026-03-09T10:15:42.008113Z","expires_at":"2026-03-09T12:15:42.008113Z","closed_at":null,"close_reason":"",` +
	`"parent_channel_id":null,"knobs":{ "graph" : {"n":9007199254740993, "f":1.50} },"labels":{"intent":"triage","z":"1"},` +
	`"required_acks":null,"pending_acks":[],"rejected_by":[]}`

func TestMetadataJSON(t *testing.T) {
	t.Parallel()
	t.Run("exact", func(t *testing.T) {
		t.Parallel()
		got, err := sample().AppendJSON([]byte("kept:"))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff("kept:"+sampleJSON, string(got)); diff != "" {
			t.Fatal(diff)
		}
		again, err := channel.DecodeMetadata([]byte(sampleJSON), nil)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(sample(), again); diff != "" {
			t.Fatal(diff)
		}
	})
	t.Run("nothing is null that is a list or an object", func(t *testing.T) {
		t.Parallel()
		m := &channel.Metadata{ID: "c", Manifest: &channel.Manifest{Type: "x"}, State: channel.Pending}
		got, err := m.AppendJSON(nil)
		if err != nil {
			t.Fatal(err)
		}
		want := `{"channel_id":"c","manifest":{"type":"x","version":0,"participants":{"min":0,"max":null,"roles":[]},"knobs_schema":{},"default_view_policy":"","expectations":[]},` +
			`"creator_id":"","participants":[],"state":"pending","created_at":null,"expires_at":null,"closed_at":null,"close_reason":"","parent_channel_id":null,` +
			`"knobs":{},"labels":{},"required_acks":null,"pending_acks":[],"rejected_by":[]}`
		if diff := cmp.Diff(want, string(got)); diff != "" {
			t.Fatal(diff)
		}
	})
	t.Run("embedded in other JSON", func(t *testing.T) {
		t.Parallel()
		got, err := json.Marshal(map[string]any{"channel": sample()})
		if err != nil {
			t.Fatal(err)
		}
		var back struct {
			Channel jsontext.Value `json:"channel"`
		}
		if err := json.Unmarshal(got, &back); err != nil {
			t.Fatal(err)
		}
		again, err := channel.DecodeMetadata(back.Channel, nil)
		if err != nil {
			t.Fatal(err)
		}
		if again.ID != sample().ID || again.Manifest.Type != "conversation" {
			t.Fatalf("read as %+v", again)
		}
	})
	t.Run("what could not be read again is not written", func(t *testing.T) {
		t.Parallel()
		for name, m := range map[string]*channel.Metadata{
			"no manifest": {ID: "c", State: channel.Active},
			"no state":    {ID: "c", Manifest: &channel.Manifest{Type: "x"}},
			"bad knobs":   {ID: "c", Manifest: &channel.Manifest{Type: "x"}, State: channel.Active, Knobs: []byte(`[1]`)},
			"bad text":    {ID: "\xff", Manifest: &channel.Manifest{Type: "x"}, State: channel.Active},
		} {
			if _, err := m.AppendJSON(nil); err == nil {
				t.Errorf("%s was written", name)
			}
		}
	})
}

func TestDecodeMetadata(t *testing.T) {
	t.Parallel()
	for name, at := range map[string]string{
		"ours": "2026-03-09T10:15:42.008113Z", "ag2's": "2026-03-09T10:15:42.008113+00:00",
		"another zone": "2026-03-09T12:15:42.008113+02:00", "no zone": "2026-03-09T10:15:42.008113",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m, err := channel.DecodeMetadata([]byte(`{"manifest":{"type":"x"},"state":"closed","created_at":"`+at+`","later_key":[1],"closed_at":""}`), nil)
			if err != nil {
				t.Fatal(err)
			}
			want := &channel.Metadata{
				Manifest: &channel.Manifest{Type: "x", Version: 1, Participants: channel.Bounds{Min: 2}, DefaultView: "full_transcript"},
				State:    channel.Closed, CreatedAt: epoch, Participants: []channel.Participant{},
			}
			if diff := cmp.Diff(want, m); diff != "" {
				t.Fatal(diff)
			}
		})
	}
	for at, year := range map[string]int{"0000-01-01T00:00:00Z": 0, "9999-12-31T23:59:59Z": 9999} {
		m, err := channel.DecodeMetadata([]byte(`{"manifest":{"type":"x"},"state":"active","created_at":"`+at+`"}`), nil)
		if err != nil || m.CreatedAt.Year() != year {
			t.Errorf("%s: %v", at, err)
		}
	}
	for _, knobs := range []string{`{}`, `null`} {
		m, err := channel.DecodeMetadata([]byte(`{"manifest":{"type":"x","knobs_schema":`+knobs+`},"state":"active","knobs":`+knobs+`}`), nil)
		if err != nil || m.Knobs != nil || m.Manifest.KnobsSchema != nil {
			t.Errorf("knobs %s are kept: %v", knobs, err)
		}
	}
	for name, bad := range map[string]string{
		"no JSON": `{`, "a list": `[]`, "no manifest": `{"state":"active"}`, "manifest without type": `{"manifest":{},"state":"active"}`,
		"unknown state": `{"manifest":{"type":"x"},"state":"asleep"}`, "no state": `{"manifest":{"type":"x"}}`,
		"bad time":            `{"manifest":{"type":"x"},"state":"active","created_at":"noon"}`,
		"bad joining time":    `{"manifest":{"type":"x"},"state":"active","participants":[{"joined_at":"noon"}]}`,
		"a time too early":    `{"manifest":{"type":"x"},"state":"active","created_at":"0000-01-01T00:00:00+10:00"}`,
		"a time too late":     `{"manifest":{"type":"x"},"state":"active","created_at":"9999-12-31T23:59:59-10:00"}`,
		"knobs of no object":  `{"manifest":{"type":"x"},"state":"active","knobs":[]}`,
		"schema of no object": `{"manifest":{"type":"x","knobs_schema":5},"state":"active"}`,
		"expectation unnamed": `{"manifest":{"type":"x","expectations":[{"on_violation":"warn"}]},"state":"active"}`,
		"without a handler":   `{"manifest":{"type":"x","expectations":[{"name":"n"}]},"state":"active"}`,
		"params of no object": `{"manifest":{"type":"x","expectations":[{"name":"n","on_violation":"warn","params":[]}]},"state":"active"}`,
		"a key twice":         `{"manifest":{"type":"x"},"state":"active","state":"closed"}`,
	} {
		if m, err := channel.DecodeMetadata([]byte(bad), nil); err == nil {
			t.Errorf("%s: read as %+v", name, m)
		}
	}
}

func TestDecodeExpectations(t *testing.T) {
	t.Parallel()
	got, err := channel.DecodeExpectations([]byte(`[{"name":"a","on_violation":"warn"},{"name":"b","on_violation":"hide","params":{"seconds":1},"applies_to":[]}]`))
	if err != nil {
		t.Fatal(err)
	}
	want := []channel.Expectation{{Name: "a", OnViolation: "warn"}, {Name: "b", OnViolation: "hide", Params: []byte(`{"seconds":1}`), AppliesTo: []string{}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatal(diff)
	}
	text, err := got[1].AppendJSON(nil)
	if err != nil || string(text) != `{"name":"b","on_violation":"hide","params":{"seconds":1},"applies_to":[]}` {
		t.Fatalf("%s, %v", text, err)
	}
	if _, err := channel.DecodeExpectations([]byte(`{}`)); err == nil {
		t.Fatal("an object was read as a list")
	}
}

func drawMetadata(t *rapid.T) *channel.Metadata {
	text := rapid.StringMatching(`[a-zé"\\ ]{0,8}`)
	instant := func(label string) time.Time {
		if rapid.Bool().Draw(t, label+" unset") {
			return time.Time{}
		}
		return epoch.Add(time.Duration(rapid.Int64Range(-1e9, 1e12).Draw(t, label)) * time.Microsecond)
	}
	object := rapid.SampledFrom([]string{"", `{"a": 1.0}`, `{"seconds":1e400,"x":[ ]}`})
	raw := func(label string) []byte {
		if s := object.Draw(t, label); s != "" {
			return []byte(s)
		}
		return nil
	}
	list := func(label string) []string {
		if l := rapid.SliceOfN(text, 0, 3).Draw(t, label); len(l) > 0 {
			return l
		}
		return nil
	}
	m := &channel.Metadata{
		ID: text.Draw(t, "id"), Creator: text.Draw(t, "creator"), State: channel.Lifecycle(rapid.IntRange(1, 5).Draw(t, "state")),
		CreatedAt: instant("created"), ExpiresAt: instant("expires"), ClosedAt: instant("closed"), CloseReason: text.Draw(t, "reason"),
		Parent: text.Draw(t, "parent"), Knobs: raw("knobs"), PendingAcks: list("pending"), RejectedBy: list("rejected"),
		Manifest: &channel.Manifest{
			Type: "t" + text.Draw(t, "type"), Version: rapid.Int().Draw(t, "version"), KnobsSchema: raw("schema"), DefaultView: text.Draw(t, "view"),
			Participants: channel.Bounds{Min: rapid.Int().Draw(t, "min")},
		},
		Participants: []channel.Participant{},
	}
	if rapid.Bool().Draw(t, "bounded") {
		m.RequiredAcks, m.Manifest.Participants.Max = new(rapid.Int().Draw(t, "acks")), new(3)
	}
	for range rapid.IntRange(0, 3).Draw(t, "participants") {
		m.Participants = append(m.Participants, channel.Participant{
			Agent: text.Draw(t, "agent"), Role: channel.Role(text.Draw(t, "role")), Order: rapid.Int().Draw(t, "order"), JoinedAt: instant("joined"),
		})
	}
	for range rapid.IntRange(0, 2).Draw(t, "expectations") {
		m.Manifest.Expectations = append(m.Manifest.Expectations, channel.Expectation{
			Name: "n" + text.Draw(t, "name"), OnViolation: "warn", Params: raw("params"), AppliesTo: list("applies"),
		})
	}
	for range rapid.IntRange(0, 2).Draw(t, "labels") {
		if m.Labels == nil {
			m.Labels = map[string]string{}
		}
		m.Labels[text.Draw(t, "label")] = text.Draw(t, "value")
	}
	return m
}

func TestRoundTrip(t *testing.T) {
	t.Parallel()
	shared := channel.NewInterner(0)
	rapid.Check(t, func(t *rapid.T) {
		m := drawMetadata(t)
		before := m.Clone()
		for _, write := range []func([]byte) ([]byte, error){m.AppendJSON, m.AppendStored} {
			text, err := write(nil)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(before, m); diff != "" {
				t.Fatalf("writing changed it:\n%s", diff)
			}
			for _, in := range []*channel.Interner{nil, shared} {
				again, err := channel.DecodeMetadata(text, in)
				if err != nil {
					t.Fatalf("%v\n%s", err, text)
				}
				if diff := cmp.Diff(m, again); diff != "" {
					t.Fatalf("read again it differs:\n%s", diff)
				}
			}
		}
	})
}

// The stored form leaves out empty optional members.
func TestStoredMetadata(t *testing.T) {
	t.Parallel()
	m := &channel.Metadata{ID: "c", Manifest: &channel.Manifest{Type: "tide", Version: 1}, Creator: "a", State: channel.Active, CreatedAt: epoch}
	const want = `{"channel_id":"c","manifest":{"type":"tide","version":1,"participants":{"min":0,"max":null,"roles":[]},` +
		`"knobs_schema":{},"default_view_policy":"","expectations":[]},"creator_id":"a","participants":[],"state":"active",` +
		`"created_at":"2026-03-09T10:15:42.008113Z"}`
	if got, err := m.AppendStored(nil); err != nil || string(got) != want {
		t.Errorf("got %s, %v", got, err)
	}
	if _, err := new(channel.Metadata).AppendStored(nil); err == nil {
		t.Error("metadata without a manifest is stored")
	}
}

func FuzzMetadata(f *testing.F) {
	f.Add([]byte(sampleJSON))
	f.Add([]byte(`{"manifest":{"type":"x"},"state":"active","created_at":"0001-01-01T00:00:00+14:00"}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := channel.DecodeMetadata(data, nil)
		if err != nil {
			return
		}
		text, err := m.AppendJSON(nil)
		if err != nil {
			t.Fatalf("was read but cannot be written: %v", err)
		}
		again, err := channel.DecodeMetadata(text, nil)
		if err != nil {
			t.Fatalf("cannot read what it wrote: %v\n%s", err, text)
		}
		second, err := again.AppendJSON(nil)
		if err != nil || string(second) != string(text) {
			t.Fatalf("writes differently the second time: %v\n%s\n%s", err, text, second)
		}
	})
}
