package branch_test

import (
	"strings"
	"testing"

	"github.com/parley-hub/parley/conformance/spec"
	"github.com/parley-hub/parley/view/branch"
)

// durable lists the built-in types that a table stores, by who brings them.
func durable(table *branch.Table, server bool) map[string]bool {
	found := map[string]bool{}
	for _, row := range branch.Rows() {
		if table.Durable(row.Type, []byte(`{"status":"InProgress"}`), server) {
			found[row.Type] = true
		}
	}
	return found
}

func set(names ...string) map[string]bool {
	found := map[string]bool{}
	for _, name := range names {
		found[name] = true
	}
	return found
}

func TestTheTableStores(t *testing.T) {
	t.Parallel()
	always := []string{
		branch.BranchRunStarted, branch.BranchRunCompleted, branch.MessageTurnStarted, branch.MessageTurnFinished,
		branch.TextMessageStart, branch.TextDelta, branch.TextMessageEnd,
		branch.ReasoningMessageStart, branch.ReasoningDelta, branch.ReasoningMessageEnd,
		branch.ToolCallStart, branch.ToolCallArgs, branch.ToolCallEnd, branch.ToolCallResult,
		branch.ToolCallBackgroundTaskStarted, branch.ToolCallBackgroundTaskCompleted, branch.ToolCallBackgroundTaskCancelled, branch.ToolCallBackgroundTaskFaulted,
		branch.BackgroundOperationStarted,
		branch.BranchCreated, branch.BranchForked, branch.BranchMetadataUpdated, branch.BranchTreeUpdated,
		branch.MessageStarted, branch.ContentAdded, branch.MessageCompleted, branch.BranchMiddlewareStateCommitted, branch.BranchHistoryCompacted,
	}
	spec.Check(t, "seed-003#26: history holds exactly the types that the table maps", func(t *spec.T) {
		t.Equal(durable(branch.NewTable(), false), set(always...))
	})
	spec.Check(t, "seed-003#145: only the server's conversion stores a turn's error", func(t *spec.T) {
		t.Equal(durable(branch.NewTable(), true), set(append(always, branch.MessageTurnError)...))
	})
	spec.Check(t, "seed-003#18: the channel does not decide what is stored", func(t *spec.T) {
		stored := map[branch.Channel][2]bool{}
		table := branch.NewTable()
		for _, row := range branch.Rows() {
			kinds := stored[row.Channel]
			if table.Durable(row.Type, []byte(`{}`), false) {
				kinds[0] = true
			} else {
				kinds[1] = true
			}
			stored[row.Channel] = kinds
		}
		for _, channel := range []branch.Channel{branch.Synchronous, branch.Streaming, branch.ControlChannel} {
			t.Equal(stored[channel], [2]bool{true, true})
		}
	})
	policies := map[string]struct {
		policy branch.Policy
		adds   []string
	}{
		"seed-003#73: transcripts, final":         {branch.Policy{Transcripts: branch.FinalTranscripts}, []string{branch.UserAudioTranscriptCompleted}},
		"seed-003#73: transcripts, all":           {branch.Policy{Transcripts: branch.AllTranscripts}, []string{branch.UserAudioTranscriptDelta, branch.UserAudioTranscriptCompleted, branch.UserAudioTranscriptFailed}},
		"seed-003#71: content by policy":          {branch.Policy{Content: true}, []string{branch.ContentUploaded, branch.ContentUploadFailed, branch.HostedFileUploaded, branch.HostedFileUploadFailed, branch.ContentReferenceResolved, branch.ContentReferenceResolutionFailed}},
		"seed-003#142: workflow events by policy": {branch.Policy{Workflow: true}, []string{branch.WorkflowStarted, branch.WorkflowLayerStarted, branch.WorkflowAgentStarted, branch.WorkflowEdgeTraversed, branch.WorkflowAgentCompleted, branch.WorkflowAgentSkipped, branch.WorkflowLayerCompleted, branch.WorkflowDiagnostic, branch.WorkflowCompleted}},
		"seed-003#141: request lifecycle only":    {branch.Policy{Requests: true}, []string{branch.AgentRequestStarted, branch.AgentRequestResolved, branch.AgentRequestExpired, branch.AgentRequestCancelled, branch.AgentResponseRejected}},
	}
	for name, test := range policies {
		spec.Check(t, name, func(t *spec.T) {
			table := branch.NewTable()
			table.Policy = test.policy
			t.Equal(durable(table, false), set(append(append([]string(nil), always...), test.adds...)...))
		})
	}
	spec.Check(t, "seed-003#74: no policy stores raw audio", func(t *spec.T) {
		table := branch.NewTable()
		table.Policy = branch.Policy{Requests: true, Workflow: true, Content: true, Transcripts: branch.AllTranscripts}
		for name := range durable(table, true) {
			t.False(strings.HasPrefix(name, "ASSISTANT_AUDIO_"), "%s is stored", name)
		}
	})
	for status, want := range map[string]bool{
		`{"status":"InProgress","statusMessage":"Polling attempt 3"}`: false,
		`{"status":"InProgress","statusMessage":"POLLING attempt 3"}`: false,
		`{"status":"InProgress","statusMessage":"Indexing shard 3"}`:  true,
		`{"status":"InProgress","statusMessage":"  "}`:                false,
		`{"status":"InProgress"}`:                                     false,
		`{"status":"Queued"}`:                                         false,
		`{"status":"Completed"}`:                                      true,
		`{"status":"Failed","statusMessage":"Polling attempt 3"}`:     true,
		`{"status":"cancelled"}`:                                      true,
		`nonsense`:                                                    false,
	} {
		spec.Check(t, "hpd-events#37 seed-003#63: stored or not: "+status, func(t *spec.T) {
			t.Equal(branch.NewTable().Durable(branch.BackgroundOperationStatus, []byte(status), false), want)
		})
	}
}

// Rows of the seed's family table: channel, kind and persistence of each.
func TestFamilies(t *testing.T) {
	t.Parallel()
	table := branch.NewTable()
	type labels struct {
		Channel     branch.Channel
		Kind        branch.Kind
		Persistence branch.Persistence
	}
	for name, family := range map[string]struct {
		want  labels
		types []string
	}{
		"seed-003#50: run started":                 {labels{branch.ControlChannel, branch.LifecycleKind, branch.Durable}, []string{branch.BranchRunStarted}},
		"seed-003#51: run completed":               {labels{branch.ControlChannel, branch.LifecycleKind, branch.Durable}, []string{branch.BranchRunCompleted}},
		"seed-003#52: turn started":                {labels{branch.Synchronous, branch.LifecycleKind, branch.Durable}, []string{branch.MessageTurnStarted}},
		"seed-003#53: turn finished":               {labels{branch.Synchronous, branch.LifecycleKind, branch.Durable}, []string{branch.MessageTurnFinished}},
		"seed-003#55: agent turns":                 {labels{branch.Synchronous, branch.LifecycleKind, branch.Live}, []string{branch.AgentTurnStarted, branch.AgentTurnFinished}},
		"seed-003#56: text messages":               {labels{branch.Streaming, branch.ContentKind, branch.Durable}, []string{branch.TextMessageStart, branch.TextDelta, branch.TextMessageEnd}},
		"seed-003#57: reasoning messages":          {labels{branch.Streaming, branch.ContentKind, branch.Durable}, []string{branch.ReasoningMessageStart, branch.ReasoningDelta, branch.ReasoningMessageEnd}},
		"seed-003#58: tool calls":                  {labels{branch.Synchronous, branch.LifecycleKind, branch.Durable}, []string{branch.ToolCallStart, branch.ToolCallEnd}},
		"seed-003#58: tool arguments":              {labels{branch.Streaming, branch.ContentKind, branch.Durable}, []string{branch.ToolCallArgs}},
		"seed-003#58: tool results":                {labels{branch.Synchronous, branch.ContentKind, branch.Durable}, []string{branch.ToolCallResult}},
		"seed-003#59 seed-003#60: workflow events": {labels{branch.Synchronous, branch.LifecycleKind, branch.WorkflowPolicy}, []string{branch.WorkflowStarted, branch.WorkflowAgentStarted, branch.WorkflowEdgeTraversed, branch.WorkflowCompleted}},
		"seed-003#61: background tasks":            {labels{branch.Synchronous, branch.LifecycleKind, branch.Durable}, []string{branch.ToolCallBackgroundTaskStarted, branch.ToolCallBackgroundTaskCompleted, branch.ToolCallBackgroundTaskCancelled}},
		"seed-003#61: a faulted task":              {labels{branch.Synchronous, branch.DiagnosticKind, branch.Durable}, []string{branch.ToolCallBackgroundTaskFaulted}},
		"seed-003#62: operation started":           {labels{branch.Synchronous, branch.LifecycleKind, branch.Durable}, []string{branch.BackgroundOperationStarted}},
		"seed-003#65: function retry":              {labels{branch.Synchronous, branch.DiagnosticKind, branch.Live}, []string{branch.FunctionRetry}},
		"seed-003#66: model retry":                 {labels{branch.Streaming, branch.ControlKind, branch.Live}, []string{branch.ModelCallRetry}},
		"seed-003#67: middleware error":            {labels{branch.Synchronous, branch.DiagnosticKind, branch.Live}, []string{branch.MiddlewareError}},
		"seed-003#72: audio transcripts":           {labels{branch.Streaming, branch.ContentKind, branch.TranscriptPolicy}, []string{branch.UserAudioTranscriptDelta, branch.UserAudioTranscriptCompleted, branch.UserAudioTranscriptFailed}},
		"seed-003#77: plans, schemas, …":           {labels{branch.Synchronous, branch.DiagnosticKind, branch.Live}, []string{branch.PlanUpdated, branch.SchemaChanged, branch.StructuredOutputStart, branch.StructuredOutputComplete}},
		"seed-003#144: compaction is live":         {labels{branch.Synchronous, branch.DiagnosticKind, branch.Live}, []string{branch.Compaction}},
		"seed-003#144: history compacted":          {labels{branch.Synchronous, branch.LifecycleKind, branch.OnHardRetention}, []string{branch.BranchHistoryCompacted}},
		"seed-003#143: diagnostics are live":       {labels{branch.Synchronous, branch.DiagnosticKind, branch.Live}, []string{branch.IterationStart, branch.AgentDecision, branch.Checkpoint, branch.PermissionCheck}},
	} {
		spec.Check(t, name, func(t *spec.T) {
			for _, eventType := range family.types {
				row, ok := table.Lookup(eventType)
				t.True(ok, "%s has a row", eventType)
				t.Equal(labels{row.Channel, row.Kind, row.Persistence}, family.want)
			}
		})
	}
	spec.Check(t, "seed-003#75: all audio output is live", func(t *spec.T) {
		count := 0
		for _, row := range branch.Rows() {
			if row.Family == "assistant audio" {
				count++
				t.Equal(row.Persistence, branch.Live)
				t.Equal(row.Channel, branch.Synchronous)
			}
		}
		t.Equal(count, 17)
	})
	spec.Check(t, "seed-003#64: interactive events are live", func(t *spec.T) {
		for _, row := range branch.Rows() {
			if row.Channel == branch.Interactive {
				t.Equal(row.Persistence, branch.Live)
			}
		}
	})
	c := &spec.T{T: t}
	seen := map[string]bool{}
	for _, row := range branch.Rows() {
		c.False(seen[row.Type], "%s has two rows", row.Type)
		seen[row.Type] = true
		for _, label := range []string{row.Family, row.Channel.String(), row.Kind.String(), row.Direction.String(), row.Persistence.String(), row.Source.String()} {
			c.True(label != "" && label != "unknown", "%s is labelled", row.Type)
		}
		c.Equal(branch.Canonical(strings.ToLower(branch.ThreadType(row.Type))), row.Type)
	}
	name, ok := branch.WireType(branch.LogType("TEXT_DELTA"))
	c.True(ok, "a log type")
	c.Equal(name, "TEXT_DELTA")
	for _, other := range []string{"hpd.", "ag2.text", ""} {
		_, ok := branch.WireType(other)
		c.False(ok, "%q is an event's", other)
	}
}

func TestExt(t *testing.T) {
	t.Parallel()
	c := &spec.T{T: t}
	for text, ext := range map[string]branch.Ext{
		``:                            {},
		`{"flow":"abc"}`:              {Flow: "abc"},
		`{"flow":"a\"b"}`:             {Flow: `a"b`},
		`{"flow":"a","time":"t"}`:     {Flow: "a", Time: "t"},
		`{"server":true,"agent":"x"}`: {Server: true, Agent: "x"},
		`{"flow":"f","server":true,"agent":"x","remote":true}`: {Flow: "f", Server: true, Agent: "x", Remote: true},
	} {
		c.Equal(string(ext.Bytes()), text)
		c.Equal(branch.ParseExt([]byte(text)), ext)
	}
	for _, odd := range []string{`null`, `[]`, `{"flow":5}`, `{`, `{"flow":"a\"}`, `{"flow":"a","flow":"b"}`} {
		c.Equal(branch.ParseExt([]byte(odd)), branch.Ext{})
	}
	setting, err := branch.ParseTranscripts("final")
	c.NoError(err)
	c.Equal(setting, branch.FinalTranscripts)
	_, err = branch.ParseTranscripts("some")
	c.ErrorContains(err, "off, final or all")
}
