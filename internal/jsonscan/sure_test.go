package jsonscan_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-hub/parley/internal/jsonscan"
)

// checked compares Check with the library, and reports whether they accept the text.
func checked(t *testing.T, data []byte, depth int) bool {
	t.Helper()
	valid := jsontext.Value(data).IsValid()
	if got := jsonscan.Valid(data); got != valid {
		t.Fatalf("%q: valid is %v, want %v", data, got, valid)
	}
	want := valid && !jsonscan.Deeper(data, depth)
	if got := jsonscan.Check(data, depth) == nil; got != want {
		t.Fatalf("%q: got %v, want %v", data, got, want)
	}
	return want
}

// Texts that differ in a byte or two from valid ones are taken exactly if the library
// takes them.
func TestCheckAsTheLibrary(t *testing.T) {
	t.Parallel()
	seeds := []string{
		`{"protocol":"agh-network/v0","ts":1776366000,"to":null,"body":{"text":"eight bytes, and a quote: \" more"},"ext":{}}`,
		` { "a" : [ 1 , -0.5e+10, true , false,null, "" ] , "" : { "b":"\u00e9\ud83d\udea2\/" } } `,
		"{\"\u00e9\":\"12345678\u00e9\u65e5\U0001f6a2\x7f\",\"a\\n\":1,\"aa\":{\"x\":1,\"y\":[{}]}}",
		`[[[[]]],{"a":{"a":{"a":1}}},0,10,1.0,1e5,"\\","\b\f\n\r\t"]`,
		`{"a":1,"b":2,"c":3,"d":4,"ad":5,"da":6,"aad":7,"add":8,"dda":9}`,
		`{"` + strings.Join([]string{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m", "n", "o", "p", "q", "r", "s", "t", "u", "v", "w", "x", "y"}, `":1,"`) + `":1}`,
	}
	pieces := []string{
		`"`, `\`, `{`, `}`, `[`, `]`, `,`, `:`, ` `, "\n", "\x00", "\x1f", "\x7f", "\x80", "\xc3", "\xed\xa0\x80", "\xff", "\ufeff", `\u12`, `\u00e9`, `\uD83d`, `\uDEA2`, `\ud7ff`, `\uE000`,
		`0`, `01`, `-`, `.`, `e`, `E+`, `1`, `null`, `true`, `tru`, `"a":1`, `,"a":1`, `"a"`, `{}`, `[]`, "\u00e9", `\u`, `\x`, `\"`, `\\`,
	}
	random := rand.New(rand.NewPCG(1, 2))
	valid, invalid := 0, 0
	for range 200_000 {
		data := []byte(seeds[random.IntN(len(seeds))])
		for range 1 + random.IntN(2) {
			at := random.IntN(len(data) + 1)
			end := min(len(data), at+random.IntN(3))
			piece := pieces[random.IntN(len(pieces))]
			if random.IntN(4) == 0 {
				piece = ""
			}
			data = append(append(append([]byte{}, data[:at]...), piece...), data[end:]...)
		}
		if checked(t, data, 2+random.IntN(4)) {
			valid++
		} else {
			invalid++
		}
	}
	if valid < 10_000 || invalid < 10_000 {
		t.Errorf("%d valid and %d invalid texts show little", valid, invalid)
	}
}

func FuzzCheck(f *testing.F) {
	f.Add([]byte(`{"a":[1,{"b":"\"]}\u00e9"}],"c":null}`))
	f.Add([]byte(`{"a":1,"b":2,"a":3}`))
	f.Add([]byte("\"0123456\x1f\""))
	f.Fuzz(func(t *testing.T, data []byte) { checked(t, data, 64) })
}
