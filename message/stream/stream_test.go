package stream_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-hub/parley/internal/scale"
	"github.com/parley-hub/parley/message"
	"github.com/parley-hub/parley/message/sample"
	"github.com/parley-hub/parley/message/stream"
)

func envelope(role, content string) string {
	return `{"schema":"agents-api.message","version":1,"type":"text","role":"` + role + `","content":"` + content + `","payload":{},"metadata":{}}`
}

const refused = "invalid_ai_message_envelope: envelope must be JSON serializable"

func TestNormalize(t *testing.T) {
	t.Parallel()
	a, b := envelope("user", "a"), envelope("assistant", "b")
	for name, c := range map[string]struct {
		in, out, err string
		stats        stream.Stats
	}{
		"lines":                {`{"role":"user","content":"a"}` + "\n" + `{"content":"b"}` + "\n", a + "\n" + b + "\n", "", stream.Stats{Messages: 2}},
		"no last line end":     {`{"role":"user","content":"a"}` + "\n" + `{"content":"b"}`, a + "\n" + b + "\n", "", stream.Stats{Messages: 2}},
		"blank lines":          {"\n\r\n" + `{"role":"user","content":"a"}` + "\n\n" + `{"content":"b"}` + "\n\n", a + "\n" + b + "\n", "", stream.Stats{Messages: 2}},
		"over several lines":   {"{\n \"role\": \"user\",\n \"content\": \"a\"\n}\n{\"content\":\n\"b\"}", a + "\n" + b + "\n", "", stream.Stats{Messages: 2}},
		"on one line":          {`{"role":"user","content":"a"}{"content":"b"}`, a + "\n" + b + "\n", "", stream.Stats{Messages: 2}},
		"an array":             {` [ {"role":"user","content":"a"} , {"content":"b"} ] `, "[\n" + a + ",\n" + b + "\n]\n", "", stream.Stats{Messages: 2}},
		"an array of one":      {`[{"role":"user","content":"a"}]`, "[\n" + a + "\n]\n", "", stream.Stats{Messages: 1}},
		"an empty array":       {`[]`, "[]\n", "", stream.Stats{}},
		"arrays, one a line":   {"[{\"role\":\"user\",\"content\":\"a\"}]\n[]\n[{\"content\":\"b\"}]\n", "[\n" + a + ",\n" + b + "\n]\n", "", stream.Stats{Messages: 2}},
		"lines, then an array": {`{"role":"user","content":"a"}` + "\n" + `[{"content":"b"}]`, a + "\n" + b + "\n", "", stream.Stats{Messages: 2}},
		"an array inside":      {`[[],{"content":"b"}]`, "[\n" + envelope("assistant", "") + ",\n" + b + "\n]\n", "", stream.Stats{Messages: 2}},
		"nothing":              {``, "", "", stream.Stats{}},
		"only white space":     {" \n\n ", "", "", stream.Stats{}},
		"a bad message":        {"{\"role\":\"user\",\"content\":\"a\"}\n\n\"x\"\n{}", a + "\n", "line 3: invalid_ai_message_envelope: message must be an array", stream.Stats{Messages: 1, Refused: 1}},
		"a bad element":        {"[{\"role\":\"user\",\"content\":\"a\"},\n{\"role\":\"\"}]", "[\n" + a, "line 2, element 2: invalid_ai_message_envelope: role must be a non-empty string", stream.Stats{Messages: 1, Refused: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for way, r := range map[string]io.Reader{
				"at once": strings.NewReader(c.in), "byte by byte": iotest.OneByteReader(strings.NewReader(c.in)), "with the end": iotest.DataErrReader(strings.NewReader(c.in)),
			} {
				var out bytes.Buffer
				stats, err := stream.Normalize(t.Context(), r, &out, stream.Options{})
				if out.String() != c.out {
					t.Errorf("%s: got\n%s\nwant\n%s", way, out.String(), c.out)
				}
				if text := fmt.Sprint(err); text != c.err && (err != nil || c.err != "") {
					t.Errorf("%s: error %s, want %s", way, text, c.err)
				}
				if stats != c.stats {
					t.Errorf("%s: %+v", way, stats)
				}
			}
		})
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	input := strings.Join([]string{
		`{"role":"user"}`,                       // 1
		`{"role":""}`,                           // 2
		`{"role":"user"`,                        // 3: cut off; the value never ends
		`{"content":7}`,                         // 4
		``,                                      // 5
		`  {"content":"` + "\xff" + `"} {}`,     // 6: its rest is lost with it
		`{"a":1,"a":2}`,                         // 7
		`{"version":2,"type":"x","payload":{}}`, // 8
		`[{"role":5},`,                          // 9: an array
		` {"role":"ok"},`,                       // 10
		` "s"]`,                                 // 11
		`nonsense`,                              // 12
		`{"content":"` + strings.Repeat("x", 300) + `"}`, // 13: too large
		`{"role":"last"}`, // 14
		`{"metadata":[` + strings.Repeat("1,", 60) + `1]}`, // 15: too many values
		`{"role":`, // 16
	}, "\n")
	var got []string
	for _, r := range []io.Reader{strings.NewReader(input), iotest.OneByteReader(strings.NewReader(input)), iotest.HalfReader(strings.NewReader(input))} {
		got = nil
		stats, err := stream.Check(t.Context(), r, stream.Options{MaxMessage: 200, MaxValues: 50}, func(p *stream.Problem) error {
			got = append(got, fmt.Sprintf("%d %v", p.Line, p.Err))
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		want := []string{
			"2 invalid_ai_message_envelope: role must be a non-empty string",
			"3 " + refused,
			"4 invalid_ai_message_envelope: content must be a string or array",
			"6 " + refused,
			"7 " + refused,
			"8 invalid_ai_message_envelope: unsupported version",
			"9 invalid_ai_message_envelope: role must be a non-empty string",
			"11 invalid_ai_message_envelope: message must be an array",
			"12 " + refused,
			"13 " + refused,
			"15 " + refused,
			"16 " + refused,
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
		if (stats != stream.Stats{Messages: 3, Refused: 12}) {
			t.Errorf("%+v", stats)
		}
	}

	stop := errors.New("stop")
	stats, err := stream.Check(t.Context(), strings.NewReader("1\n2\n3"), stream.Options{}, func(*stream.Problem) error { return stop })
	if !errors.Is(err, stop) || stats.Refused != 1 {
		t.Errorf("%v %+v", err, stats)
	}
}

func TestProblemsNameTheirCause(t *testing.T) {
	t.Parallel()
	problems := func(input string, o stream.Options) (texts []string, errs []error) {
		_, err := stream.Check(t.Context(), strings.NewReader(input), o, func(p *stream.Problem) error {
			texts = append(texts, p.Error())
			errs = append(errs, p)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return texts, errs
	}
	texts, errs := problems("{\"a\":1,\"a\":2}\n{\"role\":7}", stream.Options{})
	if len(texts) != 2 || !strings.HasPrefix(texts[0], "line 1: "+refused+" (") || !strings.Contains(texts[0], "duplicate") ||
		texts[1] != "line 2: invalid_ai_message_envelope: role must be a non-empty string" {
		t.Errorf("%q", texts)
	}
	if !errors.Is(errs[0], message.ErrSerializable) || !errors.Is(errs[1], message.ErrRole) {
		t.Errorf("%v", errs)
	}
	texts, errs = problems(`{"content":"`+strings.Repeat("x", 100)+`"}`, stream.Options{MaxMessage: 50})
	if len(texts) != 1 || texts[0] != "line 1: "+refused+" (stream: the message is too large; raise the limit or split it (50 bytes are allowed))" || !errors.Is(errs[0], stream.ErrTooLarge) {
		t.Errorf("%q", texts)
	}
	texts, _ = problems(`[1,2,3]`+"\n"+`[[1,2,3]]`, stream.Options{MaxValues: 3})
	if len(texts) != 4 || texts[3] != "line 2, element 1: "+refused+" (stream: the message is too large; raise the limit or split it (3 values are allowed))" {
		t.Errorf("%q", texts)
	}
	// An array may be one line, so its elements are counted; what follows it is not.
	texts, _ = problems(`[{},{},{"role":""}, 7]`+"\n"+`{"role":""}`, stream.Options{})
	if got := strings.Join(texts, "|"); got != "line 1, element 3: invalid_ai_message_envelope: role must be a non-empty string|"+
		"line 1, element 4: invalid_ai_message_envelope: message must be an array|line 2: invalid_ai_message_envelope: role must be a non-empty string" {
		t.Errorf("the places are %s", got)
	}
	// 3 bytes hold no more than 3 values; 4 values in 8 bytes are within 4.
	if texts, _ = problems(`[[1,2,3]]`, stream.Options{MaxValues: 4}); len(texts) != 0 {
		t.Errorf("%q", texts)
	}
	if texts, _ = problems(`{"a":1}`, stream.Options{MaxValues: 1}); len(texts) != 1 {
		t.Errorf("%q", texts)
	}
	texts, errs = problems("[{},\n x,{}]\n{\"role\":1}", stream.Options{})
	if len(texts) != 1 || !strings.HasPrefix(texts[0], "line 2, element 2: ") || !errors.Is(errs[0], stream.ErrArray) {
		t.Errorf("a broken array: %q", texts)
	}
	if texts, errs = problems("[{},", stream.Options{}); len(texts) != 1 || !errors.Is(errs[0], stream.ErrArray) {
		t.Errorf("half an array: %q", texts)
	}
	if texts, _ = problems("]\n{}", stream.Options{}); len(texts) != 1 {
		t.Errorf("the end of no array: %q", texts)
	}
}

func TestLimits(t *testing.T) {
	t.Parallel()
	if stream.DefaultMaxMessage != 8<<20 || stream.DefaultMaxValues != 250000 {
		t.Error("other limits than documented")
	}
	fits := `{"content":"` + strings.Repeat("x", 1<<20) + `"}`
	var out bytes.Buffer
	if stats, err := stream.Normalize(t.Context(), strings.NewReader(fits+"\n"+fits), &out, stream.Options{}); err != nil || stats.Messages != 2 {
		t.Errorf("1 MiB: %+v %v", stats, err)
	}
	large := `{"content":"` + strings.Repeat("x", stream.DefaultMaxMessage+1<<20) + `"}`
	stats, err := stream.Check(t.Context(), strings.NewReader(large+"\n{}\n"), stream.Options{}, func(p *stream.Problem) error {
		if p.Line != 1 || !errors.Is(p, stream.ErrTooLarge) {
			t.Errorf("%v", p)
		}
		return nil
	})
	if err != nil || (stats != stream.Stats{Messages: 1, Refused: 1}) {
		t.Errorf("9 MiB: %+v %v", stats, err)
	}
	for size, refused := range map[int]int{99: 0, 100: 0, 101: 1, 5000: 1} {
		exact := `{"content":"` + strings.Repeat("x", size-14) + `"}`
		for name, r := range map[string]io.Reader{"at once": strings.NewReader(exact + "\n{}"), "byte by byte": iotest.OneByteReader(strings.NewReader(exact + "\n{}"))} {
			stats, err := stream.Check(t.Context(), r, stream.Options{MaxMessage: 100}, func(*stream.Problem) error { return nil })
			if err != nil || (stats != stream.Stats{Messages: 2 - refused, Refused: refused}) {
				t.Errorf("%d of 100 bytes, %s: %+v %v", size, name, stats, err)
			}
		}
	}
	values := `{"content":[` + strings.Repeat("1,", stream.DefaultMaxValues) + `1]}`
	if stats, _ := stream.Check(t.Context(), strings.NewReader(values), stream.Options{}, func(*stream.Problem) error { return nil }); stats.Refused != 1 {
		t.Errorf("many values: %+v", stats)
	}
	values = `{"content":[` + strings.Repeat("1,", stream.DefaultMaxValues-10) + `1]}`
	if stats, _ := stream.Check(t.Context(), strings.NewReader(values), stream.Options{}, func(p *stream.Problem) error { return p }); stats.Messages != 1 {
		t.Errorf("just enough values: %+v", stats)
	}
}

// A file of any size goes through in the memory of its largest message.
func TestConstantMemory(t *testing.T) {
	size := scale.N(8 << 20)
	source := &repeated{line: sample.Lines(1 << 16), left: size}
	peak := &peakHeap{}
	stats, err := stream.Normalize(t.Context(), source, peak, stream.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if stats.Messages < size/200 {
		t.Errorf("%d messages of %d bytes", stats.Messages, size)
	}
	if peak.bytes > 24<<20 {
		t.Errorf("the heap grew to %d MiB", peak.bytes>>20)
	}
}

// repeated yields the same lines until left is used up.
type repeated struct {
	line, rest []byte
	left       int
}

func (r *repeated) Read(p []byte) (int, error) {
	if len(r.rest) == 0 {
		if r.left <= 0 {
			return 0, io.EOF
		}
		r.rest = r.line
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	r.left -= n
	return n, nil
}

// peakHeap discards what is written and looks at the heap now and then.
type peakHeap struct {
	writes int
	bytes  uint64
}

func (p *peakHeap) Write(b []byte) (int, error) {
	if p.writes++; p.writes%64 == 1 {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		p.bytes = max(p.bytes, m.HeapAlloc)
	}
	return len(b), nil
}

func TestReadingFails(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken pipe")
	for name, text := range map[string]string{"between": "{\"role\":\"user\"}\n", "inside": "{\"role\":\"user\"}\n{\"role\":", "in an array": "[{\"role\":\"user\"},"} {
		r := io.MultiReader(strings.NewReader(text), iotest.ErrReader(broken))
		var items int
		var failure error
		for _, err := range stream.Messages(t.Context(), r, stream.Options{}) {
			if err != nil {
				failure = err
				continue
			}
			items++
		}
		if items != 1 || !errors.Is(failure, broken) {
			t.Errorf("%s: %d items, %v", name, items, failure)
		}
		if _, err := stream.Normalize(t.Context(), io.MultiReader(strings.NewReader(text), iotest.ErrReader(broken)), io.Discard, stream.Options{}); !errors.Is(err, broken) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := stream.Check(t.Context(), io.MultiReader(strings.NewReader(text), iotest.ErrReader(broken)), stream.Options{}, nil); !errors.Is(err, broken) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := stream.Collect(t.Context(), io.MultiReader(strings.NewReader(text), iotest.ErrReader(broken)), stream.Options{}, 9); !errors.Is(err, broken) {
			t.Errorf("%s: %v", name, err)
		}
	}
	// The rest of a bad line cannot be skipped either.
	r := io.MultiReader(strings.NewReader("nonsense"), iotest.ErrReader(broken))
	if _, err := stream.Check(t.Context(), r, stream.Options{}, func(*stream.Problem) error { return nil }); !errors.Is(err, broken) {
		t.Errorf("while skipping: %v", err)
	}
	if _, err := stream.Normalize(t.Context(), strings.NewReader(`{}`), failingWriter{broken}, stream.Options{}); !errors.Is(err, broken) {
		t.Errorf("writing: %v", err)
	}
	large := strings.Repeat(`{"content":"`+strings.Repeat("x", 1000)+"\"}\n", 200)
	if stats, err := stream.Normalize(t.Context(), strings.NewReader(large), failingWriter{broken}, stream.Options{}); !errors.Is(err, broken) || stats.Messages > 100 {
		t.Errorf("writing a lot: %+v %v", stats, err)
	}
	if _, err := stream.Normalize(t.Context(), strings.NewReader(`[]`), failingWriter{broken}, stream.Options{}); !errors.Is(err, broken) {
		t.Errorf("writing an array: %v", err)
	}
	done, cancel := context.WithCancel(t.Context())
	cancel()
	if stats, err := stream.Normalize(done, strings.NewReader(`{}`), io.Discard, stream.Options{}); !errors.Is(err, context.Canceled) || stats.Messages != 0 {
		t.Errorf("cancelled: %+v %v", stats, err)
	}
}

type failingWriter struct{ err error }

func (w failingWriter) Write([]byte) (int, error) { return 0, w.err }

func TestProjectAndCollect(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	stats, err := stream.Project(t.Context(), strings.NewReader(`{"version":1,"type":"delta","content":"x","data":{"i":1}}`), &out, stream.Options{}, stream.Provider)
	if err != nil || stats.Messages != 1 || out.String() != `{"role":"assistant","content":"x","metadata":{"type":"delta","i":1}}`+"\n" {
		t.Errorf("%s %+v %v", out.String(), stats, err)
	}
	refuse := errors.New("not this one")
	out.Reset()
	stats, err = stream.Project(t.Context(), strings.NewReader("{}\n{}"), &out, stream.Options{}, func(_ message.Envelope, dst []byte) ([]byte, error) {
		return append(dst, "half"...), refuse
	})
	if !errors.Is(err, refuse) || out.Len() != 0 || stats.Messages != 0 {
		t.Errorf("%s %+v %v", out.String(), stats, err)
	}

	all, err := stream.Collect(t.Context(), bytes.NewReader(sample.Conversation()), stream.Options{}, 7)
	if err != nil || len(all) != 7 || all[6].Type != message.TypeFinalResult {
		t.Errorf("%d %v", len(all), err)
	}
	if _, err = stream.Collect(t.Context(), bytes.NewReader(sample.Conversation()), stream.Options{}, 6); !errors.Is(err, stream.ErrTooMany) {
		t.Errorf("%v", err)
	}
	var problem *stream.Problem
	if _, err = stream.Collect(t.Context(), strings.NewReader("{}\n\n7"), stream.Options{}, 9); !errors.As(err, &problem) || problem.Line != 3 {
		t.Errorf("%v", err)
	}
	for item, err := range stream.Messages(t.Context(), strings.NewReader("{}\n{}\n{}"), stream.Options{}) {
		if err != nil || item.Line != 1 {
			t.Errorf("%d %v", item.Line, err)
		}
		break
	}
}

func FuzzStream(f *testing.F) {
	f.Add([]byte("{}\n[{},{}]\nx\n{\"a\":1,\"a\":2}\n\"\xff\"\n"), 20)
	f.Add([]byte("[{},\n"), 3)
	f.Add(sample.Conversation(), 300)
	f.Fuzz(func(t *testing.T, data []byte, limit int) {
		lines := bytes.Count(data, []byte("\n")) + 1
		last := 0
		_, err := stream.Check(t.Context(), bytes.NewReader(data), stream.Options{MaxMessage: limit, MaxValues: limit}, func(p *stream.Problem) error {
			if p.Line < last || p.Line > lines {
				t.Fatalf("line %d after %d of %d", p.Line, last, lines)
			}
			last = p.Line
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	})
}
