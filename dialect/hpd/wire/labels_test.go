package wire_test

import (
	"strings"
	"testing"

	"github.com/parley-hub/parley/conformance/spec"
	"github.com/parley-hub/parley/dialect/hpd/wire"
	"github.com/parley-hub/parley/view/branch"
)

// shown returns the labels that a stream writes for an event of a type.
func shown(t *spec.T, name string) (channel, kind, direction string) {
	t.Helper()
	e := read(t.T, write(t.T, &wire.Event{Payload: filled(name)}, wire.Branches))
	return e.Channel.String(), e.Kind.String(), e.Direction.String()
}

func TestLabelsOnTheWire(t *testing.T) {
	t.Parallel()
	channels := func(t *spec.T, want string, names ...string) {
		t.Helper()
		for _, name := range names {
			channel, _, _ := shown(t, name)
			t.Equal(name+" "+channel, name+" "+want)
		}
	}
	spec.Check(t, "seed-003#19 hpd-events#27: deltas stream", func(t *spec.T) {
		channels(t, "Streaming", branch.TextDelta, branch.ReasoningDelta)
	})
	spec.Check(t, "seed-003#20 hpd-events#27: requests and responses are interactive", func(t *spec.T) {
		channels(t, "Interactive", branch.PermissionRequest, branch.PermissionResponse, branch.ContinuationRequest, branch.ContinuationResponse,
			branch.ClarificationRequest, branch.ClarificationResponse, branch.ClientToolInvokeRequest, branch.ClientToolInvokeResponse)
	})
	spec.Check(t, "seed-003#21 hpd-events#27: run events and interruption control", func(t *spec.T) {
		channels(t, "Control", branch.BranchRunStarted, branch.BranchRunCompleted, branch.InterruptionRequest, branch.InterruptionHandled)
	})
	spec.Check(t, "seed-003#22: an event that sets no channel has the default", func(t *spec.T) {
		channels(t, "", branch.AgentTurnStarted, branch.MessageTurnStarted, branch.FunctionRetry, branch.PlanUpdated)
		e := &wire.Event{Base: wire.Base{Channel: branch.Interactive}, Payload: wire.AgentTurnStarted{}}
		t.Contains(write(t.T, e, wire.Branches), `"channel":"Interactive"`)
	})
	for number, name := range map[string]string{"23": branch.PermissionResponse, "24": branch.ContinuationResponse, "25": branch.ClarificationResponse} {
		spec.Check(t, "seed-003#"+number+" hpd-events#26: sent upstream is "+name, func(t *spec.T) {
			_, _, direction := shown(t, name)
			t.Equal(direction, "Upstream")
		})
	}
	spec.Check(t, "hpd-events#26: a client tool's response goes upstream", func(t *spec.T) {
		_, _, direction := shown(t, branch.ClientToolInvokeResponse)
		t.Equal(direction, "Upstream")
	})
	spec.Check(t, "seed-003#48: inputs travel upstream on the control channel", func(t *spec.T) {
		for _, name := range []string{branch.UserTextInput, branch.UserMessagesInput, branch.InterruptionRequest} {
			channel, _, direction := shown(t, name)
			t.Equal(name+channel+direction, name+"ControlUpstream")
		}
	})
}

func TestAudio(t *testing.T) {
	t.Parallel()
	var audio []string
	for _, row := range branch.Rows() {
		if strings.HasPrefix(row.Type, "ASSISTANT_AUDIO_") {
			audio = append(audio, row.Type)
		}
	}
	statements := []string{"92", "93", "94", "95", "96", "97", "98", "99", "100", "101", "102", "103", "104", "105", "106", "107", "108"}
	if len(audio) != len(statements) {
		t.Fatalf("%d audio types, not %d", len(audio), len(statements))
	}
	members := map[string][]string{
		"OUTPUT_STARTED":           {"providerKey", "modelId", "voiceId", "language", "outputFormat"},
		"OUTPUT_STREAM_STARTED":    {"segmentId", "segmentSequence", "providerKey", "mediaType", "payloadKind"},
		"OUTPUT_CHUNK_READY":       {"segmentId", "segmentSequence", "chunkSequence", "sizeBytes", "duration", "isFinalChunk", "payloadKind"},
		"PUSH_TEXT_STREAM_OPENING": {"providerKey", "inputAggregationMode"},
		"PUSH_TEXT_STREAM_OPENED":  {"providerKey", "inputAggregationMode"},
		"PUSH_TEXT_INPUT_SENT":     {"sourceTextStart", "sourceTextLength", "isFinalInput", "inputAggregationMode"},
		"OUTPUT_STREAM_COMPLETED":  {"segmentId", "segmentSequence", "disposition", "chunkCount", "sizeBytes", "duration"},
		"OUTPUT_ARTIFACT_CAPTURED": {"segmentId", "mediaType", "artifact", "store", "artifactId", "sha256", "sizeBytes", "duration"},
		"OUTPUT_SEGMENT_FAILED":    {"segmentId", "providerKey", "error", "disposition", "isFinal"},
		"OUTPUT_COMPLETED":         {"disposition", "segmentCount", "played", "heardByUser"},
		"OUTPUT_FAILED":            {"providerKey", "error", "disposition"},
		"PLAYBACK_QUEUED":          {"segmentId", "segmentSequence", "mediaType", "played", "heardByUser"},
		"PLAYBACK_STARTED":         {"segmentId", "segmentSequence", "mediaType"},
		"PLAYBACK_PROGRESS":        {"segmentId", "playedDuration", "playedTextLength", "precision", "played", "heardByUser"},
		"PLAYBACK_COMPLETED":       {"segmentId", "mediaType", "duration", "playedTextLength", "precision", "played", "heardByUser"},
		"PLAYBACK_INTERRUPTED":     {"segmentId", "playedDuration", "playedTextLength", "precision", "played", "heardByUser"},
		"PLAYBACK_FAILED":          {"segmentId", "error", "played", "heardByUser"},
	}
	roundTrip := func(t *spec.T, name string) {
		t.Helper()
		sent := &wire.Event{Base: base(), Payload: filled(name)}
		text := write(t.T, sent, wire.Branches)
		t.Equal(read(t.T, text), sent)
		t.Contains(text, `"version":"1.0"`, `"type":"`+name+`"`, `"sessionId":"s-7"`, `"outputFlowId":"`, `"responseId":"`)
		want := members[strings.TrimPrefix(name, "ASSISTANT_AUDIO_")]
		t.True(len(want) > 0, "the members of %s are listed here", name)
		for _, member := range want {
			t.Contains(text, `"`+member+`":`)
		}
	}
	for i, name := range audio {
		spec.Check(t, "seed-003#"+statements[i]+" hpd-events#17: every member survives in "+name, func(t *spec.T) { roundTrip(t, name) })
		spec.Check(t, "seed-003#89 seed-003#109: an ordinary envelope carries "+name, func(t *spec.T) { roundTrip(t, name) })
		spec.Check(t, "seed-003#90 seed-003#91: scope and ids of "+name, func(t *spec.T) {
			roundTrip(t, name)
			t.False(strings.Contains(write(t.T, &wire.Event{Payload: filled(name)}, wire.Branches), "sessionId"), "a session without a scope")
		})
	}
}
