package wire

import (
	"github.com/parley-hub/parley/internal/jsonbuf"
	"github.com/parley-hub/parley/internal/jsonscan"
)

// WorkState is a state of work as traces name it.
type WorkState string

// The states of work.
const (
	Submitted  WorkState = "submitted"
	Working    WorkState = "working"
	NeedsInput WorkState = "needs_input"
	Completed  WorkState = "completed"
	Failed     WorkState = "failed"
	Canceled   WorkState = "canceled"
)

func (s WorkState) known() bool {
	switch s {
	case Submitted, Working, NeedsInput, Completed, Failed, Canceled:
		return true
	}
	return false
}

// TraceBody reports how work stands.
type TraceBody struct {
	State        WorkState
	Message      string
	Result       []byte // any JSON value as received, or nil; objects are emitted
	ArtifactRefs []byte // a JSON array as received, or nil
}

func readTrace(raw []byte) (*TraceBody, *Rejection) {
	b, trace := body{path: "body."}, &TraceBody{}
	for name, value := range jsonscan.Members(raw) {
		switch string(name) {
		case "state":
			b.text("state", value, (*string)(&trace.State))
		case "message":
			b.text("message", value, &trace.Message)
		case "result":
			if !jsonscan.IsNull(value) {
				trace.Result = value
			}
		case "artifact_refs":
			b.list("artifact_refs", value, &trace.ArtifactRefs)
		}
	}
	if b.fault == nil && !trace.State.known() {
		b.wrong("state", "is none of submitted, working, needs_input, completed, failed and canceled")
	}
	return trace, b.fault
}

// AppendJSON writes the body; its result is an object or absent.
func (t *TraceBody) AppendJSON(buf []byte) ([]byte, error) {
	b := &jsonbuf.Buffer{Bytes: buf}
	b.Open('{')
	b.Key("state").String(string(t.State))
	if t.Message != "" {
		b.Key("message").String(t.Message)
	}
	if t.Result != nil {
		b.Key("result").Object(t.Result)
	}
	if t.ArtifactRefs != nil {
		b.Key("artifact_refs").Value(t.ArtifactRefs)
	}
	b.Close('}')
	return b.Result()
}
