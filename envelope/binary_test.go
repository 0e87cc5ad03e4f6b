package envelope_test

import (
	"bytes"
	"encoding/hex"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/parley-hub/parley/envelope"
)

var update = flag.Bool("update", false, "write the golden records anew")

// goldens are records of version 1, byte for byte. They are read for ever.
func goldens() map[string]*envelope.Envelope {
	at := time.Date(2026, 3, 9, 10, 15, 42, 8113, time.UTC)
	ttl := int64(-1)
	return map[string]*envelope.Envelope{
		"smallest": {CreatedAt: at, Priority: envelope.Normal, Data: []byte{}},
		"text": {
			ID: strings.Repeat("18a0c4ff", 4), Channel: "c1", Sender: "a1", Type: envelope.TypeText,
			CreatedAt: at, Priority: envelope.Normal, Data: []byte(`{"text":"grüß dich"}`),
		},
		"everything": {
			ID: strings.Repeat("0123abcd", 4), Channel: "c", Sender: "s", Type: "t", Audience: []string{"x", ""},
			To: "to", Causation: "cause", Task: "task", Key: "key", Trace: "trace", Priority: "purple", Depth: -3,
			TTL: &ttl, CreatedAt: at, Origin: envelope.Origin{Dialect: "agh", ID: "f", Hops: 2},
			Ext: []byte(`{"e":1}`), Data: []byte(` {"n":1e400} `), Foreign: []byte{0, 0xff},
		},
		"nobody": {CreatedAt: at, Priority: envelope.Urgent, Audience: []string{}, Data: []byte(`{}`)},
	}
}

func TestGoldenRecords(t *testing.T) {
	t.Parallel()
	for name, e := range goldens() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join("testdata", name+".v1.hex")
			got, err := e.Append(nil)
			if err != nil {
				t.Fatal(err)
			}
			if *update {
				if err := os.WriteFile(file, []byte(hex.EncodeToString(got)+"\n"), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			want, err := hex.DecodeString(strings.TrimSpace(string(text)))
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got, want) {
				t.Errorf("record changed:\n got %x\nwant %x", got, want)
			}
			back, err := envelope.Unmarshal(want)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(e, back); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestAppendKeepsWhatStandsBefore(t *testing.T) {
	t.Parallel()
	e := goldens()["text"]
	plain, _ := e.Append(nil)
	got, err := e.Append([]byte("before"))
	if err != nil || string(got) != "before"+string(plain) {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestEncodeThenDecodeIsIdentity(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		e := anyEnvelope(rt)
		data, err := e.Append(nil)
		if err != nil {
			rt.Fatal(err)
		}
		back, err := envelope.Unmarshal(data)
		if err != nil {
			rt.Fatal(err)
		}
		if diff := cmp.Diff(e, back); diff != "" {
			rt.Fatal(diff)
		}
	})
}

func anyEnvelope(rt *rapid.T) *envelope.Envelope {
	text := rapid.StringN(0, 20, 100)
	e := &envelope.Envelope{
		ID: text.Draw(rt, "id"), Channel: text.Draw(rt, "channel"), Sender: text.Draw(rt, "sender"),
		Type: text.Draw(rt, "type"), To: text.Draw(rt, "to"), Causation: text.Draw(rt, "causation"),
		Task: text.Draw(rt, "task"), Key: text.Draw(rt, "key"), Trace: text.Draw(rt, "trace"),
		Priority:  envelope.ParsePriority(text.Draw(rt, "priority")),
		Depth:     rapid.Int().Draw(rt, "depth"),
		CreatedAt: time.Unix(0, rapid.Int64().Draw(rt, "at")).UTC(),
		Data:      rapid.SliceOf(rapid.Byte()).Draw(rt, "data"),
	}
	if e.CreatedAt.Year() < 1678 || e.CreatedAt.Year() > 2261 {
		e.CreatedAt = time.Unix(0, 0).UTC()
	}
	if rapid.Bool().Draw(rt, "directed") {
		e.Audience = append([]string{}, rapid.SliceOfN(text, 0, 4).Draw(rt, "audience")...)
	}
	if rapid.Bool().Draw(rt, "mortal") {
		ttl := rapid.Int64().Draw(rt, "ttl")
		e.TTL = &ttl
	}
	if rapid.Bool().Draw(rt, "foreign") {
		e.Origin = envelope.Origin{Dialect: text.Draw(rt, "dialect"), ID: text.Draw(rt, "fid"), Hops: rapid.Int().Draw(rt, "hops")}
		e.Ext = []byte(`{"x":1}`)
		e.Foreign = []byte{1}
	}
	return e
}

func TestUnmarshalRefusesDamage(t *testing.T) {
	t.Parallel()
	for name, e := range goldens() {
		whole, _ := e.Append(nil)
		for cut := range whole {
			if _, err := envelope.Unmarshal(whole[:cut]); !errors.Is(err, envelope.ErrCorrupt) {
				t.Errorf("%s cut at %d: %v", name, cut, err)
			}
		}
	}
	good, _ := goldens()["everything"].Append(nil)
	for name, data := range map[string][]byte{
		"a byte behind the end": append(bytes.Clone(good), 0),
		"another version":       append([]byte{envelope.Version + 1}, good[1:]...),
		"too large":             make([]byte, envelope.MaxRecord+1),
		"unknown flags":         {envelope.Version, 0x80, 0x80, 0x01},
		"a long form of zero":   {envelope.Version, 0x80, 0x00},
	} {
		if _, err := envelope.Unmarshal(data); !errors.Is(err, envelope.ErrCorrupt) {
			t.Errorf("%s: %v", name, err)
		}
	}
	// The size is judged first, and only above the limit.
	for size, want := range map[int]string{
		envelope.MaxRecord: "version 1 wanted", envelope.MaxRecord + 1: "4194305 bytes, at most 4194304",
	} {
		if _, err := envelope.Unmarshal(make([]byte, size)); err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%d bytes: got %v, want %q", size, err, want)
		}
	}
}

func TestUnmarshalRefusesEmptyFieldsMarkedPresent(t *testing.T) {
	t.Parallel()
	e := goldens()["smallest"]
	data, _ := e.Append(nil)
	data[1] = 2 // the addressee's flag, with the data's zero length read as its text
	data = append(data, 0)
	if _, err := envelope.Unmarshal(data); !errors.Is(err, envelope.ErrCorrupt) {
		t.Errorf("accepted, %v: it would be written differently", err)
	}
}

func TestAppendRefusesWhatItCouldNotRead(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", envelope.MaxField+1)
	at := time.Unix(0, 0)
	for name, tc := range map[string]struct {
		e    envelope.Envelope
		want string
	}{
		"long type":         {envelope.Envelope{CreatedAt: at, Type: long}, "type has 4097 bytes; at most 4096"},
		"bad UTF-8":         {envelope.Envelope{CreatedAt: at, Sender: "\xff"}, "sender is not valid UTF-8"},
		"long reader":       {envelope.Envelope{CreatedAt: at, Audience: []string{long}}, "audience has 4097 bytes"},
		"too many readers":  {envelope.Envelope{CreatedAt: at, Audience: make([]string, envelope.MaxAudience+1)}, "names 4097 readers; at most 4096"},
		"too large payload": {envelope.Envelope{CreatedAt: at, Data: make([]byte, envelope.MaxRecord/2), Ext: []byte("x")}, "payload of 2097153 bytes; at most 2097152"},
		"foreign too large": {envelope.Envelope{CreatedAt: at, Data: make([]byte, envelope.MaxRecord/2), Foreign: []byte("x")}, "payload of 2097153 bytes; at most 2097152"},
		"far future":        {envelope.Envelope{CreatedAt: time.Date(2262, 1, 1, 0, 0, 0, 0, time.UTC)}, "does not fit"},
		"far past":          {envelope.Envelope{CreatedAt: time.Date(1677, 1, 1, 0, 0, 0, 0, time.UTC)}, "does not fit"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := tc.e.Append([]byte("kept"))
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
			if string(got) != "kept" {
				t.Errorf("wrote %q", got)
			}
		})
	}
	full := envelope.Envelope{
		CreatedAt: at, Type: long[1:], Audience: make([]string, envelope.MaxAudience),
		Data: make([]byte, envelope.MaxRecord/2),
	}
	data, err := full.Append(nil)
	if err != nil {
		t.Fatalf("everything at its limit: %v", err)
	}
	if _, err := envelope.Unmarshal(data); err != nil {
		t.Errorf("everything at its limit: %v", err)
	}
}

func FuzzUnmarshal(f *testing.F) {
	for _, e := range goldens() {
		data, _ := e.Append(nil)
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		e, err := envelope.Unmarshal(data)
		if err != nil {
			return
		}
		again, err := e.Append(nil)
		if err != nil {
			t.Fatalf("decoded, but does not encode: %v", err)
		}
		if !bytes.Equal(again, data) {
			t.Fatalf("decode then encode is not identity:\n got %x\nwant %x", again, data)
		}
	})
}
