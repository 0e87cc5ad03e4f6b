package toon_test

import (
	"testing"

	"github.com/parley-hub/parley/internal/toon"
)

func TestAppend(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, in, want string }{
		{"members", `{"id":1,"name":"Ada","ok":true,"none":null}`, "id: 1\nname: Ada\nok: true\nnone: null\n"},
		{"an object in an object", `{"a":{"b":{"c":1}},"d":{}}`, "a:\n  b:\n    c: 1\nd:\n"},
		{"scalars", `{"tags":["x","y",2]}`, "tags[3]: x,y,2\n"},
		{"nothing", `{"tags":[]}`, "tags[0]:\n"},
		{"a table", `{"peers":[{"id":"a","n":1},{"n":2,"id":"b"}]}`, "peers[2]{id,n}:\n  a,1\n  b,2\n"},
		{"a table alone", `[{"id":"a"},{"id":"b"}]`, "[2]{id}:\n  a\n  b\n"},
		{"unlike objects", `[{"id":"a"},{"id":"b","n":1}]`, "[2]:\n  - id: a\n  - id: b\n    n: 1\n"},
		{"objects with lists", `[{"id":"a","l":[1,2]},{}]`, "[2]:\n  - id: a\n    l[2]: 1,2\n  -\n"},
		{"lists of lists", `{"m":[[1,2],[],"x"]}`, "m[3]:\n  - [2]: 1,2\n  - [0]:\n  - x\n"},
		{
			"texts that need quotes", `["","a,b","a:b"," a","true","-x","12","1e3","say \"hi\"\n","\u0007bell"]`,
			`[10]: "","a,b","a:b"," a","true","-x","12","1e3","say \"hi\"\n","bell"` + "\n",
		},
		{"texts that need none", `["a b","é","a/b.c"]`, "[3]: a b,é,a/b.c\n"},
		{"keys that need quotes", `{"a-b":1,"agh.include":2}`, "\"a-b\": 1\nagh.include: 2\n"},
		{"numbers", `[1e3,-0.5,12345678901234567890]`, "[3]: 1000,-0.5,12345678901234567890\n"},
		{"a scalar", ` "x" `, "x\n"},
	} {
		if got := string(toon.Append(nil, []byte(c.in))); got != c.want {
			t.Errorf("%s: got\n%swant\n%s", c.name, got, c.want)
		}
	}
}
