package value_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-hub/parley/message/value"
	"github.com/parley-hub/parley/message/value/valuetest"
)

func TestDecodeKeepsEverything(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		`null`, `true`, `false`, `"s"`, `""`, `0`, `-0`, `1.0`, `1e0`, `1E+2`, `-1.5e-7`, `9007199254740993`, `123456789012345678901234567890`,
		`[]`, `{}`, `[[]]`, `[{}]`, `{"a":[],"b":{}}`, `{"b":1,"a":2,"c":{"z":0,"y":[null,true,false,"x",-1]}}`, `["a","b",["c"],"d"]`,
		`{"":"empty","0":"zero","05":1}`, `"é\n\"\\ \u0000🌊"`, `[1,2,[3,[4,5],6],{"k":[7,8]},9]`,
	} {
		if got := valuetest.Write(valuetest.Decode(t, text)); got != text {
			t.Errorf("got %s, want %s", got, text)
		}
	}
	if got := valuetest.Write(valuetest.Decode(t, " \t\r\n{ \"a\" :\n[ 1 ,\t2\r] , \"b\":{ } }\n")); got != `{"a":[1,2],"b":{}}` {
		t.Errorf("white space: %s", got)
	}
	if got := valuetest.Write(valuetest.Decode(t, `"\u00e9\ud83c\udf0a\/"`)); got != `"é🌊/"` {
		t.Errorf("escapes: %s", got)
	}
	if got := valuetest.Write(valuetest.Decode(t, ` 12 `)); got != `12` {
		t.Errorf("a number alone: %s", got)
	}
}

func TestDecodeRefuses(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		``, ` `, `{`, `[1,]`, `{"a":1,"a":2}`, `{"k":{"a":1,"a":2}}`, "\"\xff\"", `NaN`, `01`, `1.`, `{"a" 1}`, `"\ud800"`, `tru`,
		strings.Repeat("[", 10001) + strings.Repeat("]", 10001),
	} {
		if v, err := value.Decode([]byte(text)); err == nil {
			t.Errorf("%.20s was read as %v", text, v)
		}
	}
	for _, text := range []string{`{} {}`, `1 2`, `[]x`} {
		if _, err := value.Decode([]byte(text)); !errors.Is(err, value.ErrTrailing) {
			t.Errorf("%s: %v", text, err)
		}
	}
	if _, err := value.Decode([]byte(strings.Repeat("[", 10000) + strings.Repeat("]", 10000))); err != nil {
		t.Errorf("10000 levels: %v", err)
	}
	// A decoder that refused is as good as new.
	if got := valuetest.Write(valuetest.Decode(t, `{"a":1}`)); got != `{"a":1}` {
		t.Error(got)
	}
}

func TestMap(t *testing.T) {
	t.Parallel()
	for _, size := range []int{0, 1, 2, 11, 12, 13, 40} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			t.Parallel()
			m := value.New()
			var want []string
			for i := range size {
				key := fmt.Sprintf("k%d", i)
				want = append(want, key)
				if got := m.Set(key, i); got != m {
					t.Fatal("Set returns another map")
				}
			}
			check := func() {
				t.Helper()
				if diff := cmp.Diff(want, m.Keys(), cmp.Transformer("nil", func(s []string) []string { return append([]string{}, s...) })); diff != "" {
					t.Error(diff)
				}
				if m.Len() != len(want) {
					t.Errorf("%d members, want %d", m.Len(), len(want))
				}
				for _, key := range want {
					v, ok := m.Get(key)
					if !ok || v != m.At(key) || !m.Has(key) || (fmt.Sprintf("k%v", v) != key && v != "last") {
						t.Errorf("%s: %v %v", key, v, ok)
					}
				}
			}
			check()
			for _, absent := range []string{"x", "", "k"} {
				if v, ok := m.Get(absent); ok || v != nil || m.At(absent) != nil || m.Has(absent) {
					t.Errorf("%q is there: %v", absent, v)
				}
			}
			clone := m.Clone()
			if size > 2 {
				m.Set("k1", "again")
				if m.At("k1") != "again" || clone.At("k1") != 1 {
					t.Error("a clone shares its members")
				}
				m.Delete("k1")
				m.Delete("not there")
				want = slices.Delete(want, 1, 2)
				m.Set("k1", "last")
				want = append(want, "k1")
				check()
				if clone.Len() != size {
					t.Error("a clone loses members")
				}
			}
			n := 0
			for range m.All() {
				n++
				if n == 2 {
					break
				}
			}
			if n != min(2, m.Len()) {
				t.Errorf("ranged over %d", n)
			}
		})
	}
	var none *value.Map
	if none.Len() != 0 || none.At("k") != nil || none.Has("k") || len(none.Keys()) != 0 || none.Clone().Len() != 0 || valuetest.Write(none) != "{}" {
		t.Error("a nil map is not empty")
	}
	m := value.New().Set("null", nil)
	if v, ok := m.Get("null"); !ok || v != nil || !m.Has("null") {
		t.Error("null is not present")
	}
}

// The first member is one like the others.
func TestFirstMember(t *testing.T) {
	t.Parallel()
	for _, size := range []int{1, 2, 11, 12, 13, 40} {
		m := value.New()
		var want []string
		for i := range size {
			m.Set(fmt.Sprint("k", i), value.Int(i))
			want = append(want, fmt.Sprintf(`"k%d":%d`, i, i))
		}
		m.Set("k0", "new")
		want[0] = `"k0":"new"`
		if got := valuetest.Write(m); got != "{"+strings.Join(want, ",")+"}" {
			t.Errorf("%d members, the first set again: %s", size, got)
		}
		m.Delete("k0")
		m.Delete("k0")
		if got := valuetest.Write(m); got != "{"+strings.Join(want[1:], ",")+"}" || m.Has("k0") {
			t.Errorf("%d members, the first deleted: %s", size, got)
		}
	}
}

func TestMapJSON(t *testing.T) {
	t.Parallel()
	type row struct {
		M *value.Map   `json:"m"`
		N value.Number `json:"n"`
	}
	var r row
	if err := json.Unmarshal([]byte(`{"m":{"b":1.0,"a":[]}}`), &r); err != nil {
		t.Fatal(err)
	}
	r.N = "1.50"
	text, err := json.Marshal(r)
	if err != nil || string(text) != `{"m":{"b":1.0,"a":[]},"n":1.50}` {
		t.Errorf("%s %v", text, err)
	}
	m := value.New()
	if err := m.UnmarshalJSON([]byte(`["x","y"]`)); err != nil || valuetest.Write(m) != `{"0":"x","1":"y"}` {
		t.Errorf("an array: %s %v", valuetest.Write(m), err)
	}
	for _, text := range []string{`1`, `"s"`, `{`, `null`, `true`} {
		if err := m.UnmarshalJSON([]byte(text)); err == nil {
			t.Errorf("%s was read as a map", text)
		}
	}
	if err := m.UnmarshalJSON([]byte(`1`)); err == nil || err.Error() != "value: a number is not a map; an object or an array was expected" {
		t.Errorf("the error is %v", err)
	}
}

func TestNumber(t *testing.T) {
	t.Parallel()
	for token, want := range map[value.Number]struct {
		i  int64
		ok bool
		f  float64
	}{
		"0": {0, true, 0}, "-0": {0, true, 0}, "7": {7, true, 7}, "-7": {-7, true, -7}, "1.0": {0, false, 1}, "1e0": {0, false, 1},
		"9223372036854775807": {math.MaxInt64, true, math.MaxInt64}, "-9223372036854775808": {math.MinInt64, true, math.MinInt64},
		"1E2": {0, false, 100}, "+1": {0, false, 1}, "": {0, false, 0}, "x": {0, false, 0}, "INF": {0, false, math.Inf(1)},
	} {
		i, ok := token.Int64()
		if ok != want.ok || (ok && i != want.i) || token.Float64() != want.f {
			t.Errorf("%q: %d %v %v", token, i, ok, token.Float64())
		}
	}
	if _, ok := value.Number("9223372036854775808").Int64(); ok {
		t.Error("2^63 fits int64")
	}
	for f, want := range map[float64]value.Number{
		0: "0.0", 1: "1.0", -2.5: "-2.5", 0.1: "0.1", 1e20: "100000000000000000000.0", 1e21: "1e+21", 1e-6: "0.000001", 1e-7: "1e-07",
		-1e25: "-1e+25", math.Inf(1): "INF", math.Inf(-1): "-INF", 123.456: "123.456",
	} {
		if got := value.Float(f); got != want {
			t.Errorf("%v: got %s, want %s", f, got, want)
		}
	}
	if value.Float(math.NaN()) != "NAN" || value.Int(-3) != "-3" || value.Int(int64(math.MaxInt64)) != "9223372036854775807" {
		t.Error("numbers of Go")
	}
	for _, token := range []value.Number{"0", "-0", "10", "1.5", "0.5", "-0.5e3", "1E+2", "1e-2", "2e9", "120.0"} {
		if valuetest.Write(token) != string(token) {
			t.Errorf("%s is refused", token)
		}
	}
	for _, token := range []value.Number{"", "-", "01", "-01", "1.", ".5", "1e", "1e+", "+1", "NaN", "INF", "1x", "1.5x", "0x1", "1e5x", " 1", "1 "} {
		if text, err := value.Append(nil, token); err == nil {
			t.Errorf("%q was written as %s", token, text)
		}
		if value.Check(token, 0) == nil {
			t.Errorf("%q passes", token)
		}
	}
}

func TestOf(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		v    any
		want string
	}{
		{int(-1), `-1`},
		{int8(-8), `-8`},
		{int16(-16), `-16`},
		{int32(-32), `-32`},
		{int64(math.MinInt64), `-9223372036854775808`},
		{uint(1), `1`},
		{uint8(255), `255`},
		{uint16(16), `16`},
		{uint32(32), `32`},
		{uint64(math.MaxUint64), `18446744073709551615`},
		{float32(0.1), `0.1`},
		{float32(1.25), `1.25`},
		{float32(-16777215), `-16777215.0`},
		{float64(0.1), `0.1`},
		{2.0, `2.0`},
		{json.Number("1.50"), `1.50`},
		{float32(3), `3.0`},
		{[]string{"b", "a"}, `["b","a"]`},
		{[]string(nil), `[]`},
		{[]any(nil), `[]`},
		{map[string]any{"b": 1, "a": []any{int8(2)}}, `{"a":[2],"b":1}`},
		{[]any{"x", 1, "y", 2}, `["x",1,"y",2]`},
		{value.New().Set("a", "x").Set("b", 1).Set("c", 2), `{"a":"x","b":1,"c":2}`},
		{[]any{[]any{1}, value.New().Set("k", 2)}, `[[1],{"k":2}]`},
		{(*value.Map)(nil), `null`},
		{nil, `null`},
		{true, `true`},
		{[]any{map[string]any{}}, `[{}]`},
	} {
		if got := valuetest.Write(value.Of(c.v)); got != c.want {
			t.Errorf("%v: got %s, want %s", c.v, got, c.want)
		}
		if c.v != nil && fmt.Sprintf("%T", c.v) != "*value.Map" {
			if got := valuetest.Write(c.v); got != c.want {
				t.Errorf("%v: written as %s, want %s", c.v, got, c.want)
			}
		}
	}
	for f, want := range map[float64]value.Number{math.NaN(): "NAN", math.Inf(1): "INF"} {
		if value.Of(f) != want || value.Of(float32(f)) != want {
			t.Errorf("%v is %v", f, value.Of(f))
		}
	}

	tree := valuetest.Decode(t, `{"a":[1,{"b":[]}],"c":null}`)
	if value.Of(tree) != tree {
		t.Error("what needs no change is copied")
	}
	list := []any{"a", value.Int(1), nil}
	if got := value.Of(list).([]any); &got[0] != &list[0] {
		t.Error("a list that needs no change is copied")
	}
	mixed := []any{"a", 1, []any{2}}
	if got := valuetest.Write(value.Of(mixed)); got != `["a",1,[2]]` || mixed[1] != 1 {
		t.Errorf("%s; the input is %v", got, mixed)
	}
	m := value.New().Set("a", 1).Set("b", []any{int8(2)})
	if got := valuetest.Write(value.Of(m)); got != `{"a":1,"b":[2]}` || m.At("a") != 1 {
		t.Errorf("%s; the input's a is %T", got, m.At("a"))
	}

	deep := any("x")
	for range 10002 {
		deep = []any{deep}
	}
	if err := value.Check(value.Of(deep), 0); err == nil {
		t.Error("depth passes")
	}
	if _, err := value.Append(nil, deep); err == nil {
		t.Error("depth is written")
	}
	if _, err := value.Append(nil, value.Of(deep)); err == nil {
		t.Error("cut depth is written")
	}
	foreign := struct{ A int }{1}
	if value.Of(foreign) != any(foreign) {
		t.Error("a foreign value is changed")
	}
	if _, err := value.Append(nil, []any{foreign}); err == nil || !strings.Contains(err.Error(), "struct") {
		t.Errorf("a foreign value: %v", err)
	}
}

// Of looks 10000 levels deep into whatever holds others.
func TestOfBoundsNesting(t *testing.T) {
	t.Parallel()
	for kind, wrap := range map[string]func(any) any{
		"list":   func(v any) any { return []any{v} },
		"map":    func(v any) any { return value.New().Set("k", v) },
		"go map": func(v any) any { return map[string]any{"k": v} },
	} {
		for levels, kept := range map[int]bool{9999: true, 10000: true, 10001: false, 10003: false} {
			v := any("x")
			for range levels {
				v = wrap(v)
			}
			v = value.Of(v)
			for range levels {
				switch inner := v.(type) {
				case []any:
					v = inner[0]
				case *value.Map:
					v = inner.At("k")
				}
			}
			if (v == "x") != kept {
				t.Errorf("%s of %d levels: what is inside became a %T", kind, levels, v)
			}
		}
	}
}

func TestAppendBoundsNesting(t *testing.T) {
	t.Parallel()
	m := any("x")
	for range 10000 {
		m = value.New().Set("k", m)
	}
	if _, err := value.Append(nil, m); err != nil {
		t.Errorf("10000 levels of maps: %v", err)
	}
	if _, err := value.Append(nil, value.New().Set("k", m)); err == nil {
		t.Error("10001 levels of maps are written")
	}
	v := any("x")
	for range 10000 {
		v = []any{v}
	}
	if _, err := value.Append(nil, v); err != nil {
		t.Errorf("10000 levels: %v", err)
	}
	if _, err := value.Append(nil, []any{v}); err == nil {
		t.Error("10001 levels are written")
	}
}

func TestAppendRefusesInvalidText(t *testing.T) {
	t.Parallel()
	for _, v := range []any{"\xff", []any{"a", "\xff"}, value.New().Set("\xff", 1), value.New().Set("k", "\xff")} {
		if text, err := value.Append(nil, v); err == nil {
			t.Errorf("%v was written as %s", v, text)
		}
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	for _, text := range []string{`null`, `true`, `"é"`, `1.5`, `[1,[2]]`, `{"a":{"b":[null]}}`} {
		if err := value.Check(valuetest.Decode(t, text), 0); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
	for want, v := range map[string]any{
		`"\xff" is not valid UTF-8`:      []any{value.New().Set("k", "\xff")},
		`"k\xff" is not valid UTF-8`:     value.New().Set("k\xff", 1),
		`NAN is not a JSON number`:       []any{value.Float(math.NaN())},
		`a chan int is not a JSON value`: []any{make(chan int)},
		`a int is not a JSON value`:      7,
		`nested more than 512 deep`:      valuetest.Decode(t, strings.Repeat("[", 513)+strings.Repeat("]", 513)),
	} {
		if err := value.Check(v, 0); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	for depth, ok := range map[int]bool{510: true, 511: true, 512: false} {
		for _, v := range []any{[]any{}, value.New()} {
			if err := value.Check(v, depth); (err == nil) != ok {
				t.Errorf("%T at depth %d: %v", v, depth, err)
			}
		}
		if err := value.Check("x", depth); err != nil {
			t.Errorf("a string at depth %d: %v", depth, err)
		}
	}
	if err := value.Check(valuetest.Decode(t, strings.Repeat(`{"k":`, 512)+`1`+strings.Repeat("}", 512)), 0); err != nil {
		t.Errorf("512 objects: %v", err)
	}
	if err := value.Check(valuetest.Decode(t, strings.Repeat(`{"k":`, 513)+`1`+strings.Repeat("}", 513)), 0); err == nil {
		t.Error("513 objects pass")
	}
}

func TestWeigh(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{
		`1`: 1, `"[{,"`: 1, `"\"[,"`: 1, `[]`: 2, `[1]`: 2, `[1,2,3]`: 4, `{"a,":1,"b":[2,"x\\",3]}`: 6, `{}`: 2,
	} {
		if got := value.Weigh([]byte(text)); got != want {
			t.Errorf("%s: got %d, want %d", text, got, want)
		}
	}
}
