package branch

import (
	"bytes"

	"github.com/go-json-experiment/json"

	"github.com/parley-hub/parley/internal/jsonbuf"
)

// Ext is what an event's envelope holds beside its payload. Only the dialect
// can set it, so it also marks what the server made.
type Ext struct {
	// Flow is the event's eventFlowId: its message turn, which a run mints, so
	// that it also says which run the event belongs to.
	Flow string `json:"flow,omitzero"`
	// Time is the producer's own timestamp, as it was sent.
	Time string `json:"time,omitzero"`
	// Server marks run and structural events: without it they are refused.
	Server bool `json:"server,omitzero"`
	// Agent, of a run's start, is the identity whose producer takes the run,
	// and Remote says that the producer is another process.
	Agent  string `json:"agent,omitzero"`
	Remote bool   `json:"remote,omitzero"`
	// Asked says that the identity itself is asked, by whatever dialect it reads.
	Asked bool `json:"asked,omitzero"`
	// Reported, of a run's end, is a digest of the end that the producer
	// reported, if an interruption replaced it.
	Reported string `json:"reported,omitzero"`
	// Opens, of a branch's creation, says that its other first events follow from
	// it, and Session is then the metadata of the session that it begins.
	Opens   bool `json:"opens,omitzero"`
	Session Raw  `json:"session,omitzero"`
	// RunConfig, of an input that waits, is for its producer alone: no surface
	// shows it.
	RunConfig Raw `json:"runConfig,omitzero"`
	// Messages, of a compaction, is how many messages the branch has after it,
	// which its fold cannot know.
	Messages *int64 `json:"messages,omitzero"`
}

var (
	flowHead = []byte(`{"flow":"`)
	flowTail = []byte(`"}`)
)

// Bytes returns the form that an envelope holds; nil for an empty Ext.
func (x Ext) Bytes() []byte {
	b := jsonbuf.Buffer{}
	b.Open('{')
	text := func(name, value string) {
		if value != "" {
			b.Key(name).String(value)
		}
	}
	flag := func(name string, value bool) {
		if value {
			b.Key(name).Bool(true)
		}
	}
	text("flow", x.Flow)
	text("time", x.Time)
	flag("server", x.Server)
	text("agent", x.Agent)
	flag("remote", x.Remote)
	flag("asked", x.Asked)
	text("reported", x.Reported)
	flag("opens", x.Opens)
	raw := func(name string, value Raw) {
		if value != nil {
			b.Key(name).Value(value)
		}
	}
	raw("session", x.Session)
	raw("runConfig", x.RunConfig)
	if x.Messages != nil {
		b.Key("messages").Int(int(*x.Messages))
	}
	b.Close('}')
	data, err := b.Result()
	if err != nil || len(data) == len("{}") {
		return nil // a text that is not UTF-8 never passed the parser
	}
	return data
}

// ParseExt reads what Bytes wrote. Anything else is an empty Ext.
func ParseExt(data []byte) Ext {
	if len(data) == 0 {
		return Ext{}
	}
	// Nearly every event has a plain flow and nothing else.
	if rest, ok := bytes.CutPrefix(data, flowHead); ok {
		if flow, ok := bytes.CutSuffix(rest, flowTail); ok && !bytes.ContainsAny(flow, `"\`) {
			return Ext{Flow: string(flow)}
		}
	}
	var x Ext
	if json.Unmarshal(data, &x) != nil {
		return Ext{}
	}
	return x
}
