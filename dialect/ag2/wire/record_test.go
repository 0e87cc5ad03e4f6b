package wire_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"

	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/dialect/ag2/wire"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/identity"
	"github.com/parley-hub/parley/task"
)

var at = time.Date(2026, 3, 9, 10, 15, 42, 8113000, time.UTC)

const stamp = `"2026-03-09T10:15:42.008113+00:00"`

func TestMetadata(t *testing.T) {
	t.Parallel()
	two, acks := 2, 1
	full := &channel.Metadata{
		ID: "c1", Creator: "a1", State: channel.Closed, CreatedAt: at, ExpiresAt: at, ClosedAt: at, CloseReason: "done", Parent: "c0",
		Manifest: &channel.Manifest{
			Type: "conversation", Version: 1, Participants: channel.Bounds{Min: 2, Max: &two, Roles: []channel.Role{channel.Initiator, channel.Respondent}},
			DefaultView: "windowed_summary", Expectations: []channel.Expectation{{Name: "max_silence", OnViolation: "audit", Params: []byte(`{"seconds":3600}`)}},
		},
		Participants: []channel.Participant{{Agent: "a1", Role: channel.Initiator, JoinedAt: at}, {Agent: "b1", Role: channel.Respondent, Order: 1, JoinedAt: at}},
		Knobs:        []byte(`{ "graph" : {"n":1.0} }`), Labels: map[string]string{"z": "1", "intent": "triage"},
		RequiredAcks: &acks, PendingAcks: []string{"b1"}, RejectedBy: []string{"b1"},
	}
	want := `{"channel_id":"c1","manifest":{"type":"conversation","version":1,"participants":{"min":2,"max":2,"roles":["initiator","respondent"]},"knobs_schema":{},` +
		`"default_view_policy":"windowed_summary","expectations":[{"name":"max_silence","on_violation":"audit","params":{"seconds":3600},"applies_to":null}]},` +
		`"creator_id":"a1","participants":[{"agent_id":"a1","role":"initiator","order":0,"joined_at":` + stamp + `},{"agent_id":"b1","role":"respondent","order":1,"joined_at":` + stamp + `}],` +
		`"state":"closed","created_at":` + stamp + `,"expires_at":` + stamp + `,"closed_at":` + stamp + `,"close_reason":"done","parent_channel_id":"c0","knobs":{ "graph" : {"n":1.0} },` +
		`"labels":{"intent":"triage","z":"1"},"required_acks":1,"pending_acks":["b1"],"rejected_by":["b1"]}`
	got, err := wire.AppendMetadata(nil, full)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	back, err := wire.DecodeMetadataList(fmt.Appendf(nil, "[%[1]s,%[1]s]", got))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]*channel.Metadata{full, full}, back); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	bare := &channel.Metadata{ID: "c", Manifest: &channel.Manifest{Type: "t", Version: 1}, State: channel.Pending, CreatedAt: at}
	got, err = wire.AppendMetadata(nil, bare)
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{
		`"participants":[]`, `"expires_at":null`, `"closed_at":null`, `"close_reason":""`, `"parent_channel_id":null`, `"knobs":{}`, `"labels":{}`,
		`"required_acks":null`, `"pending_acks":[]`, `"rejected_by":[]`, `"participants":{"min":0,"max":null,"roles":[]}`, `"expectations":[]`,
	} {
		if !strings.Contains(string(got), key) {
			t.Errorf("%s lacks %s", got, key)
		}
	}
}

func TestPendingTurns(t *testing.T) {
	t.Parallel()
	turns := []wire.PendingTurn{{Channel: "c", Trigger: "e", ExpectedAt: at}, {Channel: "d", ExpectedAt: at}}
	got := wire.AppendPendingTurns(nil, turns)
	want := `[{"channel_id":"c","triggering_envelope_id":"e","expected_at":` + stamp + `},{"channel_id":"d","triggering_envelope_id":null,"expected_at":` + stamp + `}]`
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	back, err := wire.DecodePendingTurns(got)
	if diff := cmp.Diff(turns, back); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if empty := wire.AppendPendingTurns(nil, nil); string(empty) != "[]" {
		t.Errorf("none is written %s", empty)
	}
	for _, bad := range []string{``, `{}`, `[1]`, `[{"channel_id":1}]`, `[{"expected_at":"soon"}]`} {
		if _, err := wire.DecodePendingTurns([]byte(bad)); err == nil {
			t.Errorf("%s is read", bad)
		}
	}
}

func TestTask(t *testing.T) {
	t.Parallel()
	capability, ch := "ocr", "c1"
	full := &wire.Task{
		ID: "t1", Owner: "a1", Spec: wire.TaskSpec{Title: "scan", Description: "d", Payload: []byte(`{"n":1.50}`), Capability: &capability},
		State: string(task.Running), CreatedAt: wire.Instant{Time: at}, StartedAt: wire.Instant{Time: at}, CompletedAt: wire.Instant{Time: at},
		ExpiresAt: wire.Instant{Time: at}, LastProgressAt: wire.Instant{Time: at},
		Progress: []byte(`{"p":1}`), Result: []byte(`[12345678901234567890]`), Error: "e", Channel: &ch,
	}
	want := `{"task_id":"t1","owner_id":"a1","spec":{"title":"scan","description":"d","payload":{"n":1.50},"capability":"ocr"},"state":"running",` +
		`"created_at":` + stamp + `,"started_at":` + stamp + `,"completed_at":` + stamp + `,"expires_at":` + stamp + `,"last_progress_at":` + stamp + `,` +
		`"progress":{"p":1},"result":[12345678901234567890],"error":"e","channel_id":"c1"}`
	got := wire.AppendTask(nil, full)
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	var back wire.Task
	if err := wire.DecodeResult(got, &back); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(full, &back); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	params, err := wire.EncodeParams(wire.ObserveTaskParams{Metadata: full})
	if err != nil || string(params) != `{"metadata":`+want+`}` {
		t.Errorf("the parameters are %s, %v", params, err)
	}
	bare := string(wire.AppendTask(nil, &wire.Task{ID: "t", Owner: "o"}))
	wantBare := `{"task_id":"t","owner_id":"o","spec":{"title":"","description":"","payload":{},"capability":null},"state":"","created_at":"","started_at":null,` +
		`"completed_at":null,"expires_at":null,"last_progress_at":null,"progress":{},"result":null,"error":"","channel_id":null}`
	if diff := cmp.Diff(wantBare, bare); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Times in every form are read; unreadable ones, and those outside the years 1 to
// 9999, are refused.
func TestInstant(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]time.Time{
		`null`: {}, `""`: {},
		`"0001-06-01T00:00:00Z"`:      time.Date(1, 6, 1, 0, 0, 0, 0, time.UTC),
		`"9999-12-31T23:59:59+00:00"`: time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC),
	} {
		var got wire.Instant
		if err := json.Unmarshal([]byte(in), &got); err != nil || !got.Equal(want) {
			t.Errorf("%s: got %v, %v", in, got, err)
		}
	}
	for in, fragment := range map[string]string{
		`"0001-01-01T00:00:00+01:00"`: "outside the years 1 to 9999",
		`"9999-12-31T23:59:59-01:00"`: "outside the years 1 to 9999",
		`"soon"`:                      "soon",
		`7`:                           "number",
	} {
		if err := json.Unmarshal([]byte(in), new(wire.Instant)); err == nil || !strings.Contains(err.Error(), fragment) {
			t.Errorf("%s: got %v, want %q", in, err, fragment)
		}
	}
}

// The error for a missing required parameter is its name in quotes.
func TestRequiredParams(t *testing.T) {
	t.Parallel()
	tests := []struct {
		params any
		keys   []string
	}{
		{&wire.RegisterParams{}, []string{"passport", "resume"}},
		{&wire.NameOrID{}, []string{"name_or_id"}},
		{&wire.ByName{}, []string{"name"}},
		{&wire.ByAgent{}, []string{"agent_id"}},
		{&wire.NamesForParams{}, []string{"agent_ids"}},
		{&wire.ListAgentsParams{}, nil},
		{&wire.SetResumeParams{}, []string{"agent_id", "resume"}},
		{&wire.SetSkillParams{}, []string{"agent_id"}},
		{&wire.SetRuleParams{}, []string{"agent_id", "rule"}},
		{&wire.CreateChannelParams{}, []string{"creator_id", "manifest_type", "participants"}},
		{&wire.ByChannel{}, []string{"channel_id"}},
		{&wire.ListChannelsParams{}, nil},
		{&wire.CloseChannelParams{}, []string{"channel_id"}},
		{&wire.ReadWALParams{}, []string{"channel_id"}},
		{&wire.CausationParams{}, []string{"channel_id", "sender_id", "causation_id"}},
		{&wire.CanSendParams{}, []string{"channel_id", "sender_id"}},
		{&wire.TurnFailureParams{}, []string{"channel_id", "agent_id", "envelope_id"}},
		{&wire.ByTask{}, []string{"task_id"}},
		{&wire.ListTasksParams{}, nil},
		{&wire.ObserveTaskParams{}, []string{"metadata"}},
		{&wire.UpdateTaskParams{}, []string{"task_id"}},
		{&wire.ObservationParams{}, []string{"owner_id", "capability", "outcome"}},
		{&wire.TaskEventParams{}, []string{"task_id", "kind"}},
		{&wire.CheckpointParams{}, []string{"task_id", "state"}},
	}
	for _, tt := range tests {
		for left := range tt.keys {
			var members []string
			for i, key := range tt.keys {
				if i != left {
					members = append(members, `"`+key+`":null`)
				}
			}
			err := wire.DecodeParams([]byte("{"+strings.Join(members, ",")+"}"), tt.params)
			if fault.CodeOf(err) != fault.Invalid || !strings.Contains(err.Error(), "'"+tt.keys[left]+"'") {
				t.Errorf("%T without %s: got %v", tt.params, tt.keys[left], err)
			}
		}
		members := []string{`"unknown":{"x":[1]}`}
		for _, key := range tt.keys {
			members = append(members, `"`+key+`":null`)
		}
		if err := wire.DecodeParams([]byte("{"+strings.Join(members, ",")+"}"), tt.params); err != nil {
			t.Errorf("%T with nulls: got %v", tt.params, err)
		}
	}
	if err := wire.DecodeParams(nil, &wire.ListAgentsParams{}); err != nil {
		t.Errorf("no parameters: got %v", err)
	}
	for in, want := range map[string]wire.Millis{`840`: 840, `12.5`: 13, `-0.4`: 0, `1152921504606846976`: 1 << 60} {
		var p wire.ObservationParams
		err := wire.DecodeParams([]byte(`{"owner_id":"a","capability":"c","outcome":"completed","latency_ms":`+in+`}`), &p)
		if err != nil || p.LatencyMS == nil || *p.LatencyMS != want {
			t.Errorf("a latency of %s: got %v, %v, want %d", in, p.LatencyMS, err, want)
		}
	}
	for _, in := range []string{`1e19`, `-9223372036854775808`, `"12"`} {
		err := wire.DecodeParams([]byte(`{"owner_id":"a","capability":"c","outcome":"completed","latency_ms":`+in+`}`), &wire.ObservationParams{})
		if fault.CodeOf(err) != fault.Invalid || !strings.Contains(err.Error(), "params.latency_ms") {
			t.Errorf("a latency of %s: got %v", in, err)
		}
	}
	if err := wire.DecodeParams([]byte(`{"limit":"x"}`), &wire.ListAgentsParams{}); err == nil || !strings.Contains(err.Error(), "params.limit") {
		t.Errorf("a limit of text: got %v", err)
	}
}

func TestIdentityRecords(t *testing.T) {
	t.Parallel()
	p := &identity.Passport{Name: "q", Auth: identity.Auth{Scheme: "none", ClaimHash: "secret"}, Version: 1, AgentID: "a", CreatedAt: at}
	got, err := wire.AppendPassport([]byte("x"), p)
	want := `x{"name":"q","owner":"","provider":null,"model":null,"cost":null,"region":null,"auth":{"scheme":"none","issuer":null,"audience":null,"key_fingerprint":null,"claim":{}},"kind":null,"hub_id":null,"version":1,"agent_id":"a","created_at":` + stamp + `}`
	if diff := cmp.Diff(want, string(got)); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	names, err := wire.AppendTextMap(nil, map[string]string{"b": "2", "a": "1"})
	if err != nil || string(names) != `{"a":"1","b":"2"}` {
		t.Errorf("names are %s, %v", names, err)
	}
	var read map[string]string
	if err := wire.DecodeResult(names, &read); err != nil || read["b"] != "2" {
		t.Errorf("names are read as %v, %v", read, err)
	}
	var none *string
	if err := wire.DecodeResult(nil, &none); err != nil || none != nil {
		t.Errorf("no result is read as %v, %v", none, err)
	}
}

func TestOps(t *testing.T) {
	t.Parallel()
	seen := map[wire.Op]bool{}
	for _, op := range wire.Ops() {
		seen[op] = true
	}
	if len(seen) != 30 {
		t.Errorf("there are %d operations, want 30", len(seen))
	}
}
