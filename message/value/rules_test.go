package value_test

import (
	"math"
	"testing"

	"github.com/parley-hub/parley/message/value"
	"github.com/parley-hub/parley/message/value/valuetest"
)

func TestContainers(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text                      string
		container, list           bool
		length                    int
		asMap, values, stringKeys string
	}{
		{`[]`, true, true, 0, `{}`, `[]`, `{}`},
		{`{}`, true, true, 0, `{}`, `[]`, `{}`},
		{`["a","b"]`, true, true, 2, `{"0":"a","1":"b"}`, `["a","b"]`, `{}`},
		{`{"0":"a","1":"b"}`, true, true, 2, `{"0":"a","1":"b"}`, `["a","b"]`, `{}`},
		{`{"1":"b","0":"a"}`, true, false, 2, `{"1":"b","0":"a"}`, `["b","a"]`, `{}`},
		{`{"0":"a","k":"b","05":1}`, true, false, 3, `{"0":"a","k":"b","05":1}`, `["a","b",1]`, `{"k":"b","05":1}`},
		{`"s"`, false, false, 0, ``, ``, `{}`},
		{`5`, false, false, 0, ``, ``, `{}`},
		{`null`, false, false, 0, ``, ``, `{}`},
	} {
		v := valuetest.Decode(t, c.text)
		if value.IsContainer(v) != c.container || value.IsList(v) != c.list || value.Len(v) != c.length {
			t.Errorf("%s: container %v, list %v, length %d", c.text, value.IsContainer(v), value.IsList(v), value.Len(v))
		}
		m, ok := value.AsMap(v)
		if ok != c.container || (ok && valuetest.Write(m) != c.asMap) {
			t.Errorf("%s as a map: %v", c.text, ok)
		}
		if got := valuetest.Write(value.MapOrEmpty(v)); got != c.asMap && c.container || !c.container && got != "{}" {
			t.Errorf("%s as a map or empty: %s", c.text, got)
		}
		list, ok := value.Values(v)
		if ok != c.container || (ok && valuetest.Write(list) != c.values) {
			t.Errorf("%s: values %v", c.text, list)
		}
		if got := valuetest.Write(value.StringKeys(v)); got != c.stringKeys {
			t.Errorf("%s: string keys %s", c.text, got)
		}
	}
}

func TestIntKeys(t *testing.T) {
	t.Parallel()
	for key, want := range map[string]bool{
		"0": true, "7": true, "10": true, "-1": true, "-10": true, "9223372036854775807": true, "-9223372036854775808": true,
		"": false, "-": false, "-0": false, "05": false, "-05": false, "+1": false, "1.5": false, "1e3": false, " 1": false, "1 ": false,
		"9223372036854775808": false, "-9223372036854775809": false, "a": false, "1a": false, "00": false, "--1": false,
	} {
		if got := value.IsIntKey(key); got != want {
			t.Errorf("%q: %v", key, got)
		}
	}
}

func TestTrimAndLower(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		" \t\n\r\x00\x0bx \x0b\x00\r\n\t ": "x", "\fx\f": "\fx\f", "\u00a0x\u00a0": "\u00a0x\u00a0", "\u2003": "\u2003", " ": "", "a b": "a b",
	} {
		if got := value.Trim(in); got != want {
			t.Errorf("trim %q: %q", in, got)
		}
	}
	for in, want := range map[string]string{"AZaz09_Ä": "azaz09_Ä", "abc": "abc", "": "", "xY": "xy", "[@`{": "[@`{", "ZZ": "zz"} {
		if got := value.Lower(in); got != want {
			t.Errorf("lower %q: %q", in, got)
		}
	}
}

func TestTruthy(t *testing.T) {
	t.Parallel()
	for _, falsy := range []string{`null`, `false`, `0`, `0.0`, `-0`, `0e5`, `""`, `"0"`, `[]`, `{}`} {
		if value.Truthy(valuetest.Decode(t, falsy)) {
			t.Errorf("%s is true", falsy)
		}
	}
	for _, truthy := range []string{`true`, `1`, `-1`, `0.1`, `"false"`, `"0.0"`, `" "`, `"00"`, `[0]`, `{"a":null}`, `1e400`} {
		if !value.Truthy(valuetest.Decode(t, truthy)) {
			t.Errorf("%s is false", truthy)
		}
	}
	if !value.Truthy(value.Of(math.NaN())) || !value.Truthy(struct{}{}) {
		t.Error("what JSON cannot say is false")
	}
}

func TestText(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		`"s"`: "s", `true`: "1", `false`: "", `null`: "", `[]`: "", `[1]`: "", `{"a":1}`: "", `5`: "5", `-5`: "-5", `2.0`: "2", `-0`: "0",
		`1.5`: "1.5", `0.1`: "0.1", `1e2`: "100", `123456789012345678`: "123456789012345678", `0.00001`: "1.0E-5", `0.0001`: "0.0001",
		`1e14`: "1.0E+14", `1e13`: "10000000000000", `1e25`: "1.0E+25", `1.23456789012345678`: "1.2345678901235", `99999999999999.5`: "1.0E+14",
		`12345678901234567890`: "1.2345678901235E+19", `-1.5e-10`: "-1.5E-10", `0.5`: "0.5", `-0.0`: "-0", `123.456`: "123.456", `1e400`: "INF", `-1e400`: "-INF",
	} {
		if got := value.Text(valuetest.Decode(t, in)); got != want {
			t.Errorf("%s: got %q, want %q", in, got, want)
		}
	}
	if value.Text(value.Of(math.NaN())) != "NAN" || value.Text(struct{}{}) != "" {
		t.Error("what JSON cannot say")
	}
}

func TestIntegerAndStrings(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]int64{`5`: 5, `-7`: -7} {
		if got, ok := value.Integer(valuetest.Decode(t, in)); !ok || got != want {
			t.Errorf("%s: %d %v", in, got, ok)
		}
	}
	for _, in := range []string{`1.0`, `1e0`, `"1"`, `true`, `null`, `9223372036854775808`} {
		if _, ok := value.Integer(valuetest.Decode(t, in)); ok {
			t.Errorf("%s is an integer", in)
		}
	}
	for in, want := range map[string]bool{`"s"`: true, `" "`: true, `""`: false, `5`: false, `null`: false} {
		if _, ok := value.NonEmptyString(valuetest.Decode(t, in)); ok != want {
			t.Errorf("%s: %v", in, ok)
		}
	}
}

func TestNumbersInStrings(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]int64{
		"1": 1, " 1": 1, "\v\f\n\r\t 12x": 12, "+3": 3, "-4": -4, "1.9": 1, "-1.9": -1, ".9e1": 9, "1e2": 100, "1e": 1, "1e+": 1, "10e-1": 1, "1.": 1,
		"": 0, "x1": 0, ".": 0, "-": 0, "e1": 0, "0x1": 0, "\x001": 0, "1e400": math.MaxInt64, "-1e400": math.MinInt64, "99999999999999999999": math.MaxInt64,
		"007": 7, "1_000": 1, "1 2": 1, "+.5": 0, "+-1": 0, "12.75abc": 12, "1.5e1.5": 15,
	} {
		if got := value.LeadingInt(in); got != want {
			t.Errorf("%q: got %d, want %d", in, got, want)
		}
	}
	for in, want := range map[string]struct {
		i int64
		f float64
	}{
		"6": {6, 6}, " 6 ": {6, 6}, "\t\n\r\v\f6\t\n\r\v\f": {6, 6}, "0.5": {0, 0.5}, "-2.5": {-2, -2.5}, "1e3": {1000, 1000}, ".5": {0, 0.5}, "5.": {5, 5}, "+1": {1, 1},
	} {
		i, f, ok := value.Numeric(in)
		if !ok || i != want.i || f != want.f {
			t.Errorf("%q: %d %v %v", in, i, f, ok)
		}
	}
	for _, in := range []string{"", " ", "x", "6x", "1e", ".", "-", "0x1", "1 2", "\u00a01", "\x001", "NaN", "INF", "1.5.5", "1_0"} {
		if i, f, ok := value.Numeric(in); ok || i != 0 || f != 0 {
			t.Errorf("%q is numeric: %d %v", in, i, f)
		}
	}
	for in, want := range map[float64]int64{1.9: 1, -1.9: -1, 0: 0, 1e30: math.MaxInt64, -1e30: math.MinInt64, 9007199254740992: 9007199254740992, 9223372036854775808: math.MaxInt64, 9223372036854774784: 9223372036854774784, -9223372036854775808: math.MinInt64} {
		if got := value.Truncate(in); got != want {
			t.Errorf("%v: %d", in, got)
		}
	}
	if value.Truncate(math.NaN()) != 0 {
		t.Error("NaN")
	}
}

func TestEqual(t *testing.T) {
	t.Parallel()
	for _, pair := range [][2]string{
		{`[]`, `{}`},
		{`["a",{"k":[]}]`, `{"1":{"k":{}},"0":"a"}`},
		{`{"a":1,"b":2}`, `{"b":2,"a":1}`},
		{`1`, `1.0`},
		{`100`, `1e2`},
		{`null`, `null`},
		{`"é"`, `"\u00e9"`},
		{`true`, `true`},
		{`[1,2]`, `[1,2]`},
		{`9007199254740993`, `9007199254740993`},
		{`0.1`, `1e-1`},
		{`-0`, `0`},
	} {
		if a, b := valuetest.Decode(t, pair[0]), valuetest.Decode(t, pair[1]); !value.Equal(a, b) || !value.Equal(b, a) {
			t.Errorf("%s and %s differ", pair[0], pair[1])
		}
	}
	for _, pair := range [][2]string{
		{`9007199254740993`, `9007199254740992`},
		{`1`, `"1"`},
		{`1`, `true`},
		{`null`, `false`},
		{`null`, `0`},
		{`[]`, `null`},
		{`{}`, `""`},
		{`[1]`, `[1,2]`},
		{`["a"]`, `{"1":"a"}`},
		{`{"a":1}`, `{"a":2}`},
		{`{"a":1}`, `{"b":1}`},
		{`{"a":null}`, `{"b":1}`},
		{`{"a":1}`, `{"a":1,"b":2}`},
		{`"a"`, `"A"`},
		{`[1,2]`, `[2,1]`},
		{`[null]`, `{"a":null}`},
		{`1.5`, `1.6`},
		{`["a"]`, `{"0":"b"}`},
		{`[1]`, `1`},
		{`{"0":1}`, `1`},
		{`true`, `false`},
	} {
		if a, b := valuetest.Decode(t, pair[0]), valuetest.Decode(t, pair[1]); value.Equal(a, b) || value.Equal(b, a) {
			t.Errorf("%s and %s are equal", pair[0], pair[1])
		}
	}
	if !value.Equal(1, value.Number("1")) || !value.Equal(map[string]any{"a": []string{"x"}}, valuetest.Decode(t, `{"a":["x"]}`)) {
		t.Error("Go values are not compared as values")
	}
	if value.Equal(struct{}{}, struct{}{}) || value.Equal(math.NaN(), math.NaN()) {
		t.Error("what JSON cannot say equals itself")
	}
}

func TestPHPJSON(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		`null`: `null`, `true`: `true`, `false`: `false`, `""`: `""`, `{}`: `[]`, `[]`: `[]`, `{"a":{}}`: `{"a":[]}`,
		`{"0":"a","1":"b"}`: `["a","b"]`, `{"1":"a","0":"b"}`: `{"1":"a","0":"b"}`, `{"b":1,"a":[2,3]}`: `{"b":1,"a":[2,3]}`,
		`"a/b"`: `"a\/b"`, `"é"`: `"\u00e9"`, `"🌊"`: `"\ud83c\udf0a"`, `"\"\\"`: `"\"\\"`, `"\b\f\n\r\t"`: `"\b\f\n\r\t"`,
		`"\u0000\u000b\u001f\u007f"`: "\"\\u0000\\u000b\\u001f\x7f\"", `"<>&' ~"`: `"<>&' ~"`, `"\u2028\uffff\u0080"`: `"\u2028\uffff\u0080"`,
		`{"é/":1}`: `{"\u00e9\/":1}`, `5`: `5`, `-5`: `-5`, `2.0`: `2`, `1e25`: `1.0e+25`, `0.1`: `0.1`, `1.5e300`: `1.5e+300`, `1e-7`: `1.0e-7`,
		`0.00001`: `1.0e-5`, `0.0001`: `0.0001`, `1e17`: `1.0e+17`, `1e16`: `10000000000000000`, `123456789012345678901234567890`: `1.2345678901234568e+29`,
		`9007199254740993`: `9007199254740993`, `12345678901234567.0`: `12345678901234568`, `-1.25`: `-1.25`, `100.5`: `100.5`, `1.0E-10`: `1.0e-10`,
		`2.1578947368421053`: `2.1578947368421053`,
	} {
		v := valuetest.Decode(t, in)
		got, ok := value.AppendPHP([]byte("x"), v)
		if !ok || string(got) != "x"+want {
			t.Errorf("%s: got %s, want %s", in, got, want)
		}
		if value.PHPSize(v) != len(want) {
			t.Errorf("%s: size %d", in, value.PHPSize(v))
		}
	}
	for _, v := range []any{"\xff", value.Of(math.NaN()), struct{}{}} {
		if text, ok := value.AppendPHP(nil, []any{v}); ok || len(text) != 0 || value.PHPSize([]any{v}) != 0 {
			t.Errorf("%v was written as %s", v, text)
		}
	}
}

func TestSortKeys(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		`{"b":1,"a":{"d":1,"c":2}}`:     `{"a":{"c":2,"d":1},"b":1}`,
		`[{"b":1,"a":2},"z","a"]`:       `[{"a":2,"b":1},"z","a"]`,
		`{"10":1,"9":2,"-1":3}`:         `{"-1":3,"9":2,"10":1}`,
		`{"1":"b","0":"a"}`:             `{"0":"a","1":"b"}`,
		`{"0":{"b":1,"a":2}}`:           `{"0":{"a":2,"b":1}}`,
		`{"b":1,"B":2,"_":3,"é":4}`:     `{"B":2,"_":3,"b":1,"é":4}`,
		`{"a10":1,"a9":2,"05":3,"1":4}`: `{"05":3,"1":4,"a10":1,"a9":2}`,
		`"s"`:                           `"s"`,
	} {
		v := valuetest.Decode(t, in)
		if got := valuetest.Write(value.SortKeys(v)); got != want {
			t.Errorf("%s: got %s, want %s", in, got, want)
		}
		if got := valuetest.Write(v); got != in {
			t.Errorf("the input became %s", got)
		}
	}
}
