package agh

import (
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-hub/parley/internal/jsonbuf"
	"github.com/parley-hub/parley/internal/jsonscan"
)

// withoutMembers returns a JSON object without some of its members; nil: nothing is
// left.
func withoutMembers(object []byte, drop func(name string) bool) jsontext.Value {
	b := &jsonbuf.Buffer{}
	b.Open('{')
	left := 0
	for name, value := range jsonscan.Members(object) {
		if !drop(string(name)) {
			b.Key(string(name)).Value(value)
			left++
		}
	}
	text, err := b.Close('}').Result()
	if err != nil || left == 0 {
		return nil
	}
	return text
}
