package wire_test

import (
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/parley-hub/parley/conformance/spec"
	"github.com/parley-hub/parley/dialect/hpd/wire"
	"github.com/parley-hub/parley/view/branch"
)

func runs(lines ...string) []wire.Run {
	r := wire.Runs{Scope: wire.Scope{Session: "s", Branch: "b"}}
	for _, line := range lines {
		name, payload, _ := strings.Cut(line, " ")
		r.Apply(branch.Event{Type: name, Data: []byte(payload), Time: time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)})
	}
	return r.All()
}

func TestRuns(t *testing.T) {
	t.Parallel()
	const started = `BRANCH_RUN_STARTED {"runtimeRunId":"r","agentId":"a","startedAt":"2024-01-01T00:00:00Z"}`
	for end, want := range map[string]string{
		`{"runtimeRunId":"r","cancelled":false}`:                                    "completed",
		`{"runtimeRunId":"r","cancelled":true}`:                                     "cancelled",
		`{"runtimeRunId":"r","cancelled":true,"errorType":"RuntimeLost"}`:           "failed",
		`{"runtimeRunId":"r","cancelled":false,"errorType":"X","errorMessage":"m"}`: "failed",
		`{"runtimeRunId":"other","cancelled":true}`:                                 "active",
	} {
		spec.Check(t, "hpd-events#97: the status of a run after "+end, func(t *spec.T) {
			got := runs(started, "BRANCH_RUN_COMPLETED "+end)
			t.Equal(len(got), 1)
			t.Equal(got[0].Status, want)
			t.Equal(got[0].CompletedAt.IsZero(), want == "active")
		})
	}
	c := &spec.T{T: t}
	all := runs(started, `BACKGROUND_OPERATION_STARTED {"continuationToken":"dG9r","status":"Queued","operationId":"o"}`, `BACKGROUND_OPERATION_STATUS {"status":"InProgress","statusMessage":"shard 3"}`,
		`TOOL_CALL_BACKGROUND_TASK_STARTED {"taskId":"t1","name":"n","startedAt":"2025-01-01T00:00:00Z"}`, `TOOL_CALL_BACKGROUND_TASK_STARTED {"taskId":"t2","name":"m"}`,
		`BRANCH_RUN_COMPLETED {"runtimeRunId":"r","errorType":"T","errorMessage":"late"}`, `TOOL_CALL_BACKGROUND_TASK_COMPLETED {"taskId":"t1","completedAt":"2025-01-02T00:00:00Z"}`,
		`BRANCH_RUN_STARTED {"runtimeRunId":"q","agentId":"a2"}`, `TOOL_CALL_BACKGROUND_TASK_FAULTED {"taskId":"t2","faultedAt":"2025-01-03T00:00:00Z","exceptionType":"E","errorMessage":"bad"}`, `TOOL_CALL_BACKGROUND_TASK_CANCELLED {"taskId":"t3"}`, `BRANCH_RUN_STARTED nonsense`)
	text, err := json.Marshal(all)
	c.NoError(err)
	c.Equal(string(text), `[{"runtimeRunId":"r","agentId":"a","sessionId":"s","branchId":"b","status":"failed","startedAt":"2024-01-01T00:00:00Z","completedAt":"2025-01-01T00:00:00Z","error":{"type":"T","message":"late"},`+
		`"backgroundOperation":{"status":"InProgress","operationId":"o","statusMessage":"shard 3","continuationToken":"dG9r"},`+
		`"backgroundTasks":[{"taskId":"t1","name":"n","status":"completed","startedAt":"2025-01-01T00:00:00Z","completedAt":"2025-01-02T00:00:00Z"},{"taskId":"t2","name":"m","status":"faulted","faultedAt":"2025-01-03T00:00:00Z","errorType":"E","errorMessage":"bad"}]},`+
		`{"runtimeRunId":"q","agentId":"a2","sessionId":"s","branchId":"b","status":"active","startedAt":"2025-01-01T00:00:00Z","backgroundTasks":[{"taskId":"t3","name":"","status":"cancelled"}]}]`)
}
