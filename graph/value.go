package graph

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// plainText reports whether a JSON string has no escapes.
func plainText(quoted string) bool { return strings.IndexByte(quoted, '\\') < 0 }

// tree is a parsed value. Only comparing needs it; nothing keeps one.
type tree struct {
	kind    jsontext.Kind
	text    string
	number  decimal
	items   []tree
	members map[string]tree
}

func (t tree) equal(other tree) bool {
	if t.kind != other.kind || len(t.items) != len(other.items) || len(t.members) != len(other.members) {
		return false
	}
	if t.kind == jsontext.KindNumber {
		return t.number.compare(other.number) == 0
	}
	for i := range t.items {
		if !t.items[i].equal(other.items[i]) {
			return false
		}
	}
	for name, member := range t.members {
		against, ok := other.members[name]
		if !ok || !member.equal(against) {
			return false
		}
	}
	return t.text == other.text
}

// errLongNumber says that a value holds a number that is too long to compare.
var errLongNumber = fmt.Errorf("graph: a number has more than %d characters", MaxNumber)

func parseTree(raw []byte) (tree, error) {
	return readTree(jsontext.NewDecoder(bytes.NewBuffer(raw), lenient))
}

// lenient reads what is in a log already: folds must not fail on it.
var lenient = json.JoinOptions(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))

func readTree(dec *jsontext.Decoder) (tree, error) {
	token, err := dec.ReadToken()
	if err != nil {
		return tree{}, err
	}
	t := tree{kind: token.Kind()}
	switch t.kind {
	case jsontext.KindBeginArray:
		for dec.PeekKind() != jsontext.KindEndArray {
			item, err := readTree(dec)
			if err != nil {
				return tree{}, err
			}
			t.items = append(t.items, item)
		}
		_, err = dec.ReadToken()
	case jsontext.KindBeginObject:
		t.members = map[string]tree{}
		for dec.PeekKind() != jsontext.KindEndObject {
			name, err := dec.ReadToken()
			if err != nil {
				return tree{}, err
			}
			key := name.String()
			if t.members[key], err = readTree(dec); err != nil {
				return tree{}, err
			}
		}
		_, err = dec.ReadToken()
	case jsontext.KindNumber:
		if t.text = token.String(); len(t.text) > MaxNumber {
			return tree{}, errLongNumber
		}
		t.number = parseDecimal(t.text)
	default:
		t.text = token.String()
	}
	return t, err
}

// kindOf names the kind of a value for an error.
func kindOf(v jsontext.Value) string {
	switch v.Kind() {
	case jsontext.KindNull:
		return "null"
	case jsontext.KindTrue, jsontext.KindFalse:
		return "a boolean"
	case jsontext.KindString:
		return "a string"
	case jsontext.KindNumber:
		return "a number"
	case jsontext.KindBeginObject:
		return "an object"
	case jsontext.KindBeginArray:
		return "an array"
	}
	return "nothing"
}
