package stream_test

import (
	"errors"
	"io"
	"testing"

	"github.com/parley-hub/parley/message/stream"
)

// pieces are what a sender writes at a time.
type pieces []string

func (p *pieces) Read(buffer []byte) (int, error) {
	if len(*p) == 0 {
		return 0, io.EOF
	}
	n := copy(buffer, (*p)[0])
	if (*p)[0] = (*p)[0][n:]; (*p)[0] == "" {
		*p = (*p)[1:]
	}
	return n, nil
}

// A source is idle when what was sent so far is used up, so that its reader
// answers before it waits.
func TestSourceIsIdle(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		sent pieces
		want []bool // after each value; false for one that is refused, too
	}{
		"a line at a time":            {pieces{"{}\n", "{}\n"}, []bool{true, true}},
		"two lines at once":           {pieces{"{}\n{}\n"}, []bool{false, true}},
		"two and a half":              {pieces{"{}\n{}\n{", "}\n"}, []bool{false, false, true}},
		"only white space behind it":  {pieces{"{} \r\n\t\n", "{}\n"}, []bool{true, true}},
		"more behind a malformed one": {pieces{"{]\n{}\n", "{}\n"}, []bool{false, true, true}},
		"nothing behind it":           {pieces{"{]\n", "{}\n"}, []bool{true, true}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			source := stream.NewSource(&c.sent, stream.Options{})
			for i := 0; ; i++ {
				_, _, err := source.Next()
				if errors.Is(err, io.EOF) {
					if i != len(c.want) {
						t.Errorf("%d values, want %d", i, len(c.want))
					}
					return
				}
				if i >= len(c.want) {
					t.Fatalf("value %d is one too many", i)
				}
				if got := source.Idle(); got != c.want[i] {
					t.Errorf("after value %d: idle is %v, want %v", i, got, c.want[i])
				}
			}
		})
	}
}

// Values that are not empty are counted exactly, however densely they are written.
func TestSourceCountsValues(t *testing.T) {
	t.Parallel()
	for in, weight := range map[string]int{
		`[[1]]`: 2, `[[1,2]]`: 3, `[[1,[2,3]]]`: 5, `{"a":1}`: 2, `{"long key":[1,"long text"]}`: 4,
	} {
		for limit, want := range map[int]error{weight: nil, weight - 1: stream.ErrTooLarge} {
			_, raw, err := stream.NewSource(&pieces{in}, stream.Options{MaxValues: limit}).Next()
			if !errors.Is(err, want) || len(raw) == 0 {
				t.Errorf("%s with %d values allowed: %s, %v; want %v", in, limit, raw, err, want)
			}
		}
	}
}

// Empty lines after a malformed one count once.
func TestSourceCountsLines(t *testing.T) {
	t.Parallel()
	source := stream.NewSource(&pieces{"{]\n\n\n{]\n\n{}\n"}, stream.Options{})
	for _, want := range []int{1, 4, 6} {
		line, raw, err := source.Next()
		if line != want || (err == nil) != (want == 6) {
			t.Errorf("line %d: %s, %v; want line %d", line, raw, err, want)
		}
	}
}
