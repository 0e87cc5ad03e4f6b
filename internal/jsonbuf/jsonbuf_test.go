package jsonbuf_test

import (
	"testing"

	"github.com/parley-hub/parley/internal/jsonbuf"
)

func TestBuffer(t *testing.T) {
	t.Parallel()
	b := &jsonbuf.Buffer{Bytes: []byte("data: ")}
	b.Open('{')
	b.Key("text").String("a\"b\n").Key("none").Optional("").Key("some").Optional("x").Key("n").Int(-3).Key("yes").Bool(true).Key("no").Bool(false)
	b.Key("list").Strings([]string{"a", "b"}).Key("empty").Strings(nil).Key("map").StringMap(map[string]string{"z": "1", "a": "2"}).Key("none").StringMap(nil)
	b.Key("object").Object([]byte(`{ "a" : 1.50 }`)).Key("nothing").Object(nil).Key("value").Value([]byte(` [1e400] `)).Key("null").Null().Key("checked").Checked([]byte(`{ }`))
	b.Key("nested").Open('[').Open('{').Close('}').Open('[').Int(1).Int(2).Close(']').Close(']')
	got, err := b.Close('}').Result()
	want := `data: {"text":"a\"b\n","none":null,"some":"x","n":-3,"yes":true,"no":false,"list":["a","b"],"empty":[],"map":{"a":"2","z":"1"},"none":{},` +
		`"object":{ "a" : 1.50 },"nothing":{},"value": [1e400] ,"null":null,"checked":{ },"nested":[{},[1,2]]}`
	if err != nil || string(got) != want {
		t.Fatalf("%v\ngot  %s\nwant %s", err, got, want)
	}
}

func TestErrorsStick(t *testing.T) {
	t.Parallel()
	for name, bad := range map[string]func(*jsonbuf.Buffer){
		"text that is not UTF-8": func(b *jsonbuf.Buffer) { b.String("\xff") },
		"a key that is not":      func(b *jsonbuf.Buffer) { b.Open('{').Key("\xff").Int(1).Close('}') },
		"a list as an object":    func(b *jsonbuf.Buffer) { b.Object([]byte(`[]`)) },
		"a cut object":           func(b *jsonbuf.Buffer) { b.Object([]byte(`{"a":`)) },
		"a cut value":            func(b *jsonbuf.Buffer) { b.Value([]byte(`"a`)) },
		"no value":               func(b *jsonbuf.Buffer) { b.Value(nil) },
	} {
		b := &jsonbuf.Buffer{}
		b.Open('[')
		bad(b)
		if got, err := b.Int(1).Close(']').Result(); err == nil {
			t.Errorf("%s was written: %s", name, got)
		}
	}
}
