package bundle_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/internal/bundle"
)

var at = time.Date(2026, 3, 4, 5, 6, 7, 123456789, time.UTC)

func metadata(id string) []byte {
	m := &channel.Metadata{
		ID: id, Manifest: &channel.Manifest{Type: "discussion", Version: 1}, Creator: "a", State: channel.Closed, CreatedAt: at.Truncate(time.Microsecond),
		Participants: []channel.Participant{{Agent: "a", Role: channel.Initiator, JoinedAt: at.Truncate(time.Microsecond)}},
	}
	text, err := m.AppendJSON(nil)
	if err != nil {
		panic(err)
	}
	return text
}

// full has every field that an envelope can have.
func full(seq uint64) *envelope.Envelope {
	ttl := int64(60)
	return &envelope.Envelope{
		ID: fmt.Sprintf("%032x", seq), Seq: seq, Sender: "a", Type: "parley.note", Audience: []string{"b"}, To: "b",
		Causation: "c", Task: "t", Key: "k", Trace: "00-1-2-03", Priority: envelope.Normal, Depth: 2, TTL: &ttl, CreatedAt: at,
		Origin: envelope.Origin{Dialect: "agh", ID: "m-1", Hops: 3}, Ext: []byte(`{"x":1.50}`), Data: []byte(`{"text":"hi\u0000"}`), Foreign: []byte("\x00\xffraw\n"),
	}
}

// sample returns a home with two channels and a content.
func sample(t testing.TB) []byte {
	t.Helper()
	var out bytes.Buffer
	w := bundle.NewWriter(&out, bundle.Manifest{ExportedAt: at, Hub: "v1", Home: &bundle.Home{ID: "h", Kind: "hpd", Name: "s-1"}, Channels: 2, Contents: 1})
	plain := &envelope.Envelope{ID: fmt.Sprintf("%032x", 2), Seq: 2, Sender: "b", Type: "x", Audience: []string{}, CreatedAt: at, Data: []byte("{\n \"a\": 1 }")}
	for _, err := range []error{
		w.Channel(bundle.Channel{Metadata: metadata("h.1"), Adapter: "discussion/1", FoldVersion: 2, Envelopes: 2, Side: 2, Names: map[string]string{"a": "ada"}}),
		w.Envelope(full(1)), w.Side(full(1)), w.Envelope(plain), w.Side(&envelope.Envelope{ID: "b", Seq: 2, Sender: "b", Type: "parley.answer", CreatedAt: at, Data: []byte(`{}`)}),
		w.End(bundle.End{Sequence: 2, State: []byte(`{"n":2}`), Expected: "a"}),
		w.Channel(bundle.Channel{Metadata: metadata("h.2"), Adapter: "discussion/1"}),
		w.End(bundle.End{}),
		w.Content(bundle.Content{ID: "c", Name: "log", Size: 300_000, CreatedAt: at}, strings.NewReader(strings.Repeat("z", 300_000))),
		w.Close(),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return out.Bytes()
}

// readAll reads a bundle to its end.
func readAll(from io.Reader) (envelopes []bundle.Entry, ends []bundle.End, content []byte, err error) {
	in, err := bundle.NewReader(from)
	if err != nil {
		return nil, nil, nil, err
	}
	for {
		part, err := in.Next()
		if errors.Is(err, io.EOF) {
			return envelopes, ends, content, nil
		}
		if err != nil {
			return nil, nil, nil, err
		}
		if part.Content != nil {
			if content, err = io.ReadAll(in.Pieces()); err != nil {
				return nil, nil, nil, err
			}
			continue
		}
		for e, err := range in.Envelopes(part.Channel) {
			if err != nil {
				return nil, nil, nil, err
			}
			envelopes = append(envelopes, e)
		}
		ends = append(ends, in.End())
	}
}

func TestRoundTrip(t *testing.T) {
	t.Parallel()
	envelopes, ends, content, err := readAll(bytes.NewReader(sample(t)))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range envelopes[:2] {
		if diff := cmp.Diff(full(1), e.Envelope); diff != "" {
			t.Error(diff)
		}
	}
	if envelopes[0].Side || !envelopes[1].Side || envelopes[2].Side || !envelopes[3].Side || envelopes[3].Type != "parley.answer" {
		t.Errorf("beside the history: %+v", envelopes)
	}
	if e := envelopes[2]; e.Audience == nil || len(e.Audience) != 0 || string(e.Data) != `{"a":1}` || e.TTL != nil {
		t.Errorf("got %+v", e)
	}
	if len(envelopes) != 4 || len(ends) != 2 || string(ends[0].State) != `{"n":2}` || ends[0].Expected != "a" || len(content) != 300_000 {
		t.Errorf("%d envelopes, ends %+v, %d bytes of content", len(envelopes), ends, len(content))
	}
}

// Bundles of format 1 have nothing beside the history, and are read as before.
func TestFormat1IsRead(t *testing.T) {
	t.Parallel()
	old, err := os.ReadFile("testdata/v1.bundle")
	if err != nil || !bytes.HasPrefix(old, []byte(`{"parley_bundle":1,`)) {
		t.Fatalf("%v: %.40s", err, old)
	}
	envelopes, ends, content, err := readAll(bytes.NewReader(old))
	if err != nil || len(envelopes) != 2 || len(ends) != 2 || string(content) != "zzz" {
		t.Errorf("%d envelopes, %d ends, %d bytes: %v", len(envelopes), len(ends), len(content), err)
	}
}

// The unread rest of a channel or content is skipped.
func TestPartsArePassedOver(t *testing.T) {
	t.Parallel()
	in, err := bundle.NewReader(bytes.NewReader(sample(t)))
	if err != nil {
		t.Fatal(err)
	}
	for n := range 3 {
		if _, err := in.Next(); err != nil {
			t.Fatalf("part %d: %v", n, err)
		}
	}
	if _, err := in.Next(); !errors.Is(err, io.EOF) {
		t.Errorf("at the end: %v", err)
	}
}

// A bundle that was truncated or changed anywhere is refused before its end.
func TestDamageIsFound(t *testing.T) {
	t.Parallel()
	whole := sample(t)
	step := max(len(whole)/200, 1)
	for n := 0; n < len(whole); n += step {
		if _, _, _, err := readAll(bytes.NewReader(whole[:n])); err == nil {
			t.Fatalf("cut at %d of %d, it was read", n, len(whole))
		}
		flipped := bytes.Clone(whole)
		flipped[n] ^= 1
		if _, _, _, err := readAll(bytes.NewReader(flipped)); err == nil {
			t.Fatalf("changed at %d, it was read", n)
		}
	}
	lines := bytes.SplitAfter(whole, []byte("\n"))
	for n := range lines[:len(lines)-1] {
		without := bytes.Join(append(append([][]byte{}, lines[:n]...), lines[n+1:]...), nil)
		if _, _, _, err := readAll(bytes.NewReader(without)); err == nil {
			t.Errorf("without line %d, it was read", n+1)
		}
	}
	if _, _, _, err := readAll(bytes.NewReader(append(whole, '\n'))); err == nil {
		t.Error("with something behind its checksum, it was read")
	}
}

func TestWhatIsNoBundle(t *testing.T) {
	t.Parallel()
	long := `{"parley_bundle":1,"exported_at":"2026-01-01T00:00:00Z","hub":"` + strings.Repeat("x", bundle.MaxLine) + `"}` + "\n"
	for text, want := range map[string]string{
		"":                           "was cut off",
		"hello\n":                    "not a bundle",
		"{\"a\":1}\n":                "not a bundle",
		long:                         "has more than",
		`{"parley_bundle":9}` + "\n": "format 9; this version reads up to 2",
		`{"parley_bundle":1}` + "\n": "either one channel or a home",
	} {
		if _, err := bundle.NewReader(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: %v, want %s", text, err, want)
		}
	}
}

func FuzzReader(f *testing.F) {
	f.Add(sample(f))
	f.Add([]byte(`{"parley_bundle":2,"channels":1,"channel":{},"side_envelopes":1}` + "\n" + `{"side":{"sequence":0}}` + "\n"))
	f.Add([]byte(`{"parley_bundle":1,"channels":1,"channel":{}}` + "\n" + `{"envelope":{"sequence":1}}` + "\n"))
	f.Fuzz(func(_ *testing.T, data []byte) {
		_, _, _, _ = readAll(bytes.NewReader(data))
	})
}
