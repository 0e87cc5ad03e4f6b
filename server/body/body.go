// Package body reads the JSON bodies of requests. Its errors use JSON's own
// words, with the place and what would be right; they never name Go types. It
// does not interpret a body.
package body

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-hub/parley/fault"
)

// Read reads one JSON object into a struct, strictly: unknown or repeated
// members are refused, and so is anything after the object.
func Read(r io.Reader, into any) error {
	// Into a pointer, null decodes as nil: it is not taken for an empty object.
	target := reflect.New(reflect.TypeOf(into))
	target.Elem().Set(reflect.ValueOf(into))
	err := json.UnmarshalRead(r, target.Interface(), json.RejectUnknownMembers(true))
	if err == nil && target.Elem().IsNil() {
		return fault.New(fault.Invalid, "the body is null; it must be %s", wanted(reflect.TypeOf(into).Elem()))
	}
	if err == nil {
		return nil
	}
	if tooLarge, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return fault.New(fault.TooLarge, "the body is over %d bytes (limits.body)", tooLarge.Limit)
	}
	return fault.Wrap(fault.Invalid, err, "%s", explain(err, reflect.TypeOf(into).Elem()))
}

// ReadOptional is like Read, but accepts an empty body.
func ReadOptional(r io.Reader, into any) error {
	ahead := bufio.NewReader(r)
	if _, err := ahead.Peek(1); errors.Is(err, io.EOF) {
		return nil
	}
	return Read(ahead, into)
}

// explain says what is wrong with a body for a type.
func explain(err error, t reflect.Type) string {
	var semantic *json.SemanticError
	var syntactic *jsontext.SyntacticError
	switch {
	case errors.As(err, &semantic):
		return meaning(semantic)
	case errors.As(err, &syntactic) && syntactic.ByteOffset == 0 && errors.Is(err, io.ErrUnexpectedEOF):
		return "the body is empty; a JSON object is wanted, with " + members(t)
	case syntactic != nil:
		return syntax(syntactic)
	}
	return "the body could not be read to its end"
}

// meaning explains JSON that is well formed, but of another shape.
func meaning(err *json.SemanticError) string {
	if errors.Is(err.Err, json.ErrUnknownName) {
		return fmt.Sprintf("%s has the member %.100q, which is unknown; it may have %s", place(err.JSONPointer.Parent()), err.JSONPointer.LastToken(), members(err.GoType))
	}
	if err.Err != nil && reflect.PointerTo(err.GoType).Implements(ownReader) {
		return fmt.Sprintf("%s: %v", place(err.JSONPointer), err.Err)
	}
	got := kinds[err.JSONKind]
	if len(err.JSONValue) > 0 && err.JSONKind == '0' {
		got = fmt.Sprintf("the number %.40s", err.JSONValue)
	}
	return fmt.Sprintf("%s is %s; it must be %s", place(err.JSONPointer), got, wanted(err.GoType))
}

// ownReader is a type of ours that decodes itself and explains its own errors.
var ownReader = reflect.TypeFor[json.UnmarshalerFrom]()

// syntax explains what is not JSON.
func syntax(err *jsontext.SyntacticError) string {
	switch {
	case errors.Is(err.Err, jsontext.ErrDuplicateName):
		return place(err.JSONPointer) + " is given twice; give it once"
	case errors.Is(err.Err, io.ErrUnexpectedEOF):
		return fmt.Sprintf("the body is not JSON: it ends at byte %d, before it is complete", err.ByteOffset)
	}
	where := ""
	if err.JSONPointer != "" {
		where = ", in " + place(err.JSONPointer)
	}
	return fmt.Sprintf("the body is not JSON: %v, at byte %d%s", err.Err, err.ByteOffset, where)
}

// place names a value by its JSON pointer.
func place(p jsontext.Pointer) string {
	if p == "" {
		return "the body"
	}
	return fmt.Sprintf("%.200s", p)
}

// members lists what an object may have.
func members(t reflect.Type) string {
	var names []string
	for field := range t.Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		names = append(names, name)
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

var kinds = map[jsontext.Kind]string{
	'n': "null", 't': "a boolean", 'f': "a boolean", '"': "a string", '0': "a number", '{': "an object", '[': "a list",
}

// wanted says in JSON's words what a type is read from.
func wanted(t reflect.Type) string {
	if t == reflect.TypeFor[time.Time]() {
		return `a time as text, such as "2026-01-02T15:04:05Z"`
	}
	switch t.Kind() {
	case reflect.Pointer:
		return wanted(t.Elem())
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int64:
		return "a whole number of at most 64 bits"
	case reflect.Slice:
		return "a list, each of it " + wanted(t.Elem())
	case reflect.Map:
		return "an object, each value of it " + wanted(t.Elem())
	case reflect.Struct:
		return "an object with " + members(t)
	}
	return "something else"
}
