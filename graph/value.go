package graph

import (
	"bytes"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// sameJSON compares two valid JSON values deeply: numbers by value, strings by
// what they spell, objects whatever the order of their keys. A boolean never
// equals a number.
func sameJSON(a string, b jsontext.Value) bool {
	if a == string(b) {
		return true
	}
	if a == "" || len(b) == 0 {
		return false
	}
	// Most that differ are told apart without being parsed.
	if isNumber(a[0]) && isNumber(b[0]) {
		return compareNumbers(a, string(b)) == 0
	}
	if a[0] != b[0] {
		return false
	}
	if a[0] == '"' && !strings.Contains(a, `\`) && !bytes.Contains(b, []byte(`\`)) {
		return false
	}
	x, errX := parseTree([]byte(a))
	y, errY := parseTree(b)
	return errX == nil && errY == nil && x.equal(y)
}

// tree is a parsed value. Only comparing needs it; nothing keeps one.
type tree struct {
	kind    jsontext.Kind
	text    string
	items   []tree
	members map[string]tree
}

func (t tree) equal(other tree) bool {
	if t.kind != other.kind || len(t.items) != len(other.items) || len(t.members) != len(other.members) {
		return false
	}
	if t.kind == jsontext.KindNumber {
		return compareNumbers(t.text, other.text) == 0
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
