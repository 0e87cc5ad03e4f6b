package view_test

import (
	"strings"
	"testing"

	"github.com/parley-hub/parley/conformance/spec"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/message"
	"github.com/parley-hub/parley/view"
)

func TestMessagesOfABranch(t *testing.T) {
	t.Parallel()
	var log []*envelope.Envelope
	for _, line := range []string{
		`BRANCH_RUN_STARTED {"runtimeRunId":"r"}`, `MESSAGE_STARTED {"messageId":"u","role":"user","authorName":"ines"}`, `TEXT_DELTA {"messageId":"u","text":"What is "}`, `TEXT_DELTA {"messageId":"u","text":"7?"}`,
		`CONTENT_ADDED {"messageId":"u","content":{"$type":"hpd:image","mediaType":"image/png","uri":"hpd-content://x"}}`, `MESSAGE_COMPLETED {"messageId":"u"}`,
		`REASONING_DELTA {"messageId":"m","text":"hm"}`, `TEXT_DELTA {"messageId":"m","text":"Let me see"}`, `TOOL_CALL_START {"callId":"c","name":"add","messageId":"m"}`, `TOOL_CALL_ARGS {"callId":"c","argsJson":"{\"a\":1.50}"}`, `TOOL_CALL_END {"callId":"c"}`,
		`TOOL_CALL_RESULT {"callId":"c","result":{"text":"{\"sum\":7}","json":{"sum":7}}}`, `TOOL_CALL_RESULT {"callId":"d","result":{"text":"plain"}}`,
	} {
		name, data, _ := strings.Cut(line, " ")
		log = append(log, &envelope.Envelope{Type: "hpd." + name, Sender: "bot", Data: []byte(data)})
	}
	var got []string
	for _, m := range view.Messages(view.Input{Log: log, Participant: "bot"}) {
		data, err := m.AppendJSON(nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := message.NormalizeJSON(data); err != nil {
			t.Errorf("%s is not canonical: %v", data, err)
		}
		got = append(got, string(data))
	}
	head := `{"schema":"` + message.Schema + `","version":1,`
	(&spec.T{T: t}).Equal(got, []string{
		head + `"type":"text","role":"user","content":"What is 7?","payload":{},"metadata":{"message_id":"u","name":"ines"},"id":"u"}`,
		head + `"type":"text","role":"user","content":"[Attachment hpd:image image/png hpd-content://x]","payload":{},"metadata":{"message_id":"u","name":"ines"},"id":"u/1"}`,
		head + `"type":"text","role":"assistant","content":"Let me see","payload":{},"metadata":{"message_id":"m"},"id":"m/1"}`,
		head + `"type":"tool_call","role":"assistant","content":"","payload":{"tool_name":"add","parameters":{"a":1.50},"turn":2},"metadata":{"message_id":"m","tool_call_id":"c"},"id":"m/2"}`,
		head + `"type":"tool_result","role":"user","content":"{\"sum\":7}","payload":{"success":true,"tool_name":"add","result":{"sum":7}},"metadata":{"message_id":"tool-c","tool_call_id":"c"},"id":"tool-c"}`,
		head + `"type":"tool_result","role":"user","content":"plain","payload":{"success":true,"tool_name":"","result":"plain"},"metadata":{"message_id":"tool-d","tool_call_id":"d"},"id":"tool-d"}`,
	})
}
