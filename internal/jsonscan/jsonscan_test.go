package jsonscan_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"github.com/parley-hub/parley/internal/jsonscan"
)

func TestCheck(t *testing.T) {
	t.Parallel()
	for _, ok := range []string{`{}`, ` [1,"x"] `, `null`, `{"a":{"b":[1]}}`, `{"a":"[[[[[[[["}`, `"😀"`} {
		if err := jsonscan.Check([]byte(ok), 3); err != nil {
			t.Errorf("%s: %v", ok, err)
		}
	}
	for text, want := range map[string]string{
		``: "EOF", `{`: "EOF", `{} x`: "text follows", "\xef\xbb\xbf{}": "invalid character",
		`{"a":1,"a":2}`: "duplicate", `{"a":1,"\u0061":2}`: "duplicate", "\"\xff\"": "UTF-8",
		`"\ud800"`: "surrogate", `[[[[1]]]]`: "nests too deep", `{"a":01}`: "invalid character",
	} {
		err := jsonscan.Check([]byte(text), 3)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %q", text, err, want)
		}
	}
	if err := jsonscan.Check([]byte(`[[[[`), 3); !errors.Is(err, jsonscan.ErrDepth) {
		t.Errorf("got %v", err)
	}
}

func TestWalk(t *testing.T) {
	t.Parallel()
	object := []byte(" { \"a\" : 1 ,\"\\u0062\":\"x\\\"y\", \"c\":[ {\"d\":\"]\"} , null],\"e\":{},\"f\":true } ")
	var got []string
	for name, value := range jsonscan.Members(object) {
		got = append(got, string(name)+"="+string(value))
	}
	want := []string{"a=1", `b="x\"y"`, `c=[ {"d":"]"} , null]`, "e={}", "f=true"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	got = nil
	for value := range jsonscan.Elements([]byte(` [1, "a,b" ,[2,3],{"x":[]} ]`)) {
		got = append(got, string(value))
	}
	if diff := cmp.Diff([]string{"1", `"a,b"`, "[2,3]", `{"x":[]}`}, got); diff != "" {
		t.Error(diff)
	}
	for range jsonscan.Members([]byte(`[1]`)) {
		t.Error("an array has no members")
	}
	for range jsonscan.Elements([]byte(`{"a":1}`)) {
		t.Error("an object has no elements")
	}
	if s, ok := jsonscan.Text([]byte(`"A\n"`)); s != "A\n" || !ok {
		t.Errorf("got %q, %v", s, ok)
	}
	if _, ok := jsonscan.Text([]byte(`5`)); ok {
		t.Error("a number is not text")
	}
	if string(jsonscan.Member(object, "b")) != `"x\"y"` || jsonscan.Member(object, "z") != nil {
		t.Error("a member is found by its name")
	}
	if !jsonscan.IsNull([]byte("null")) || jsonscan.IsNull([]byte("0")) || string(jsonscan.Trim([]byte(" {} \n"))) != "{}" {
		t.Error("null, white space")
	}
}

// What is walked is what the library decodes.
func FuzzWalk(f *testing.F) {
	f.Add([]byte(`{"a":[1,{"b":"\"]}"}],"c":null}`))
	f.Add([]byte(`[ "x" , {"y": -1.5e3} ]`))
	f.Fuzz(func(t *testing.T, data []byte) {
		if jsonscan.Check(data, 64) != nil {
			return
		}
		switch jsontext.Value(data).Kind() {
		case '{':
			var want map[string]jsontext.Value
			if err := json.Unmarshal(data, &want); err != nil {
				t.Fatal(err)
			}
			got := map[string]jsontext.Value{}
			for name, value := range jsonscan.Members(data) {
				got[string(name)] = value
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatal(diff)
			}
		case '[':
			var want []jsontext.Value
			if err := json.Unmarshal(data, &want); err != nil {
				t.Fatal(err)
			}
			got := []jsontext.Value{}
			for value := range jsonscan.Elements(data) {
				got = append(got, value)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatal(diff)
			}
		}
	})
}
