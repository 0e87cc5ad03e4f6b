package transcript_test

import (
	"fmt"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/parley-hub/parley/adapter/adaptertest"
	"github.com/parley-hub/parley/adapter/transcript"
	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
)

var subject = transcript.New(transcript.Options{Messages: 4, Record: 100})

func metadata(t interface{ Fatal(...any) }) *channel.Metadata {
	knobs, err := transcript.Knobs{ScopeType: "hub", ScopeID: "default", OwnerType: "agent", OwnerKey: "ines", Agent: "parrot", Context: "chat"}.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	m := adaptertest.Metadata(subject, "", "ines")
	m.Knobs, m.Name = knobs, "7d3a"
	return m
}

func TestLaws(t *testing.T) {
	t.Parallel()
	adaptertest.Exercise(t, adaptertest.Subject{
		Adapter:  subject,
		Metadata: func(t *rapid.T) *channel.Metadata { return metadata(t) },
		Own: []string{
			transcript.TypeCreated, transcript.TypeAppended, transcript.TypeReplaced, transcript.TypeCompacted,
			transcript.TypeDescribed, transcript.TypeStarted, transcript.TypeEnded,
		},
		Payload: func(t *rapid.T, _ string, _ []string) string {
			return fmt.Sprintf(`{"rows":[{"content":"a"}],"from":%d,"through":%d,"run_id":"r%d","details":{"title":"x"}}`,
				rapid.IntRange(-1, 3).Draw(t, "from"), rapid.IntRange(-1, 3).Draw(t, "through"), rapid.IntRange(0, 2).Draw(t, "run"))
		},
		Ext: func(*rapid.T, []string) []byte { return transcript.Mark },
	})
}

// play posts records, each to the state after the previous ones.
type play struct {
	t     *testing.T
	meta  *channel.Metadata
	state channel.State
	seq   uint64
}

func open(t *testing.T) *play {
	t.Helper()
	p := &play{t: t, meta: metadata(t)}
	var err error
	if p.state, err = subject.Initial(p.meta); err != nil {
		t.Fatal(err)
	}
	return p
}

func (p *play) post(kind, data string) error {
	e := adaptertest.Envelope("ines", kind, data)
	e.Ext = transcript.Mark
	if err := subject.ValidateSend(p.meta, p.state, e); err != nil {
		return err
	}
	p.seq++
	e.Seq = p.seq
	p.state = subject.Fold(p.state, e)
	return nil
}

func (p *play) side(kind, data string) error {
	e := adaptertest.Envelope("ines", kind, data)
	e.Ext = transcript.Mark
	if err := subject.ValidateSide(p.meta, p.state, e); err != nil {
		return err
	}
	p.state = subject.FoldSide(p.state, e)
	return nil
}

func TestRules(t *testing.T) {
	t.Parallel()
	p := open(t)
	for _, step := range []struct {
		kind, data string
		want       fault.Code
	}{
		{transcript.TypeCreated, `{}`, ""},
		{transcript.TypeCreated, `{}`, fault.Conflict},
		{transcript.TypeAppended, `{"rows":[{},{}]}`, ""},
		{transcript.TypeAppended, `{"of":1,"rows":[{}]}`, fault.Conflict}, // based on an older transcript
		{transcript.TypeAppended, `{"of":2,"rows":[{}]}`, ""},
		{transcript.TypeAppended, `{"rows":[{},{}]}`, fault.TooLarge},
		{transcript.TypeReplaced, `{"from":4,"rows":[]}`, fault.Invalid},
		{transcript.TypeReplaced, `{"from":1,"rows":[{}]}`, ""},
		{transcript.TypeCompacted, `{"through":3,"rows":[]}`, fault.Invalid},
		{transcript.TypeCompacted, `{"through":2,"rows":[{}]}`, ""},
		{transcript.TypeDescribed, `{"details":{"title":"` + fmt.Sprintf("%0101d", 1) + `"}}`, fault.TooLarge},
		{transcript.TypeStarted, `{"run_id":""}`, fault.Invalid},
		{transcript.TypeStarted, `{"run_id":"r1","agent":"parrot","input":{}}`, ""},
		{transcript.TypeStarted, `{"run_id":"r2"}`, fault.Conflict},
		{transcript.TypeEnded, `{"run_id":"r2"}`, fault.Conflict},
		{transcript.TypeEnded, `{"run_id":"r1","status":"completed"}`, ""},
		{transcript.TypeStarted, `{"run_id":"r2"}`, ""},
		{envelope.TypeText, `{"text":"x"}`, fault.Protocol},
	} {
		if err := p.post(step.kind, step.data); fault.CodeOf(err) != step.want {
			t.Errorf("%s %s: %v", step.kind, step.data, err)
		}
	}
	state := p.state.(*transcript.State)
	if state.Messages != 1 || state.Base != 5 || state.Run.ID != "r2" {
		t.Errorf("the state is %+v", state)
	}
}

func TestLocks(t *testing.T) {
	t.Parallel()
	p := open(t)
	for _, step := range []struct {
		kind, data string
		want       fault.Code
	}{
		{transcript.TypeLocked, `{"token":""}`, fault.Invalid},
		{transcript.TypeLocked, `{"token":"a","ends":5}`, ""},
		{transcript.TypeLocked, `{"token":"b","ends":5}`, fault.Conflict},
		{transcript.TypeUnlocked, `{"token":"b"}`, fault.Conflict},
		{transcript.TypeLocked, `{"token":"b","ends":9,"replaces":"a"}`, ""},
		{transcript.TypeLocked, `{"token":"c","ends":9,"replaces":"a"}`, fault.Conflict},
		{transcript.TypeUnlocked, `{"token":"a"}`, fault.Conflict},
		{transcript.TypeUnlocked, `{"token":"b"}`, ""},
		{transcript.TypeUnlocked, `{"token":"b"}`, fault.Conflict},
	} {
		if err := p.side(step.kind, step.data); fault.CodeOf(err) != step.want {
			t.Errorf("%s %s: %v", step.kind, step.data, err)
		}
	}
}

// Rows are read exactly as they were written, whatever they contain.
func TestRows(t *testing.T) {
	t.Parallel()
	rows := transcript.Rows{[]byte(`{"a":1.0,"b":"\u00e9"}`), []byte(`{"a":`), []byte(` {} `), []byte(`7`), []byte("\xff\x00"), []byte("base64:eA=="), []byte("text:x"), {}}
	data, err := transcript.Encode(transcript.Change{Rows: rows})
	if err != nil {
		t.Fatal(err)
	}
	var back transcript.Change
	if err := json.Unmarshal(data, &back); err != nil {
		t.Fatal(err)
	}
	for i := range rows {
		if string(rows[i]) != string(back.Rows[i]) {
			t.Errorf("row %d: %q became %q", i, rows[i], back.Rows[i])
		}
	}
	if diff := cmp.Diff(len(rows), len(back.Rows)); diff != "" {
		t.Error(diff)
	}
}

func FuzzState(f *testing.F) {
	f.Add([]byte(`{"messages":3,"details":{},"updated":"2031-03-09T17:20:00Z"}`))
	f.Fuzz(func(t *testing.T, data []byte) { adaptertest.FuzzState(t, subject, data) })
}
