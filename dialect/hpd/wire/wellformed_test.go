package wire_test

import (
	"encoding/json"
	"testing"

	"github.com/parley-hub/parley/dialect/hpd/wire"
)

func TestWellFormed(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]string{
		`{"a":"\ud83d"}`:               `{"a":"\ufffd"}`,
		`{"a":"\uD83D!"}`:              `{"a":"\ufffd!"}`,
		`{"a":"\ude00"}`:               `{"a":"\ufffd"}`,
		`{"a":"\ud83d\ude00"}`:         `{"a":"\ud83d\ude00"}`,
		`{"a":"\ud83d\ud83d\ude00"}`:   `{"a":"\ufffd\ud83d\ude00"}`,
		`{"a":"\ud83d\u0041"}`:         `{"a":"\ufffd\u0041"}`,
		`{"a":"\\ud83d"}`:              `{"a":"\\ud83d"}`,
		`{"a":"\\\ud83d\\ude00"}`:      `{"a":"\\\ufffd\\ude00"}`,
		`{"a":"\ud83d\"","b":"\udead"`: `{"a":"\ufffd\"","b":"\ufffd"`,
		`"\ud83`:                       `"\ud83`,
		`"\ud83d\`:                     `"\ufffd\`,
		`\ud`:                          `\ud`,
	} {
		text := []byte(given)
		if got := string(wire.WellFormed(text)); got != want {
			t.Errorf("%s became %s, not %s", given, got, want)
		}
		if string(text) != given {
			t.Errorf("the text %s was changed in place", given)
		}
	}
}

func FuzzWellFormed(f *testing.F) {
	f.Add([]byte(`{"a":"\ud83d\\\ude00"}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		got := wire.WellFormed(data)
		if json.Valid(data) != json.Valid(got) {
			t.Errorf("%q became %q", data, got)
		}
		// encoding/json reads half a pair as the replacement character too.
		var before, after any
		if json.Unmarshal(data, &before) != nil || json.Unmarshal(got, &after) != nil {
			return
		}
		a, _ := json.Marshal(before)
		b, _ := json.Marshal(after)
		if string(a) != string(b) {
			t.Errorf("%q means %s, and became %q, which means %s", data, a, got, b)
		}
	})
}
