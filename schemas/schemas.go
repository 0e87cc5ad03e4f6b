// Package schemas holds the JSON Schemas (draft 2020-12) of canonical
// messages, of their results, of AGH's envelopes and of a program's turns, and
// validates documents against them.
//
// A message's schema accepts everything that normalizing produces: it is never
// stricter than the contract. The payload schemas are separate, because the
// contract leaves payloads to their readers. Nothing is fetched: the schemas
// refer only to each other.
package schemas

import (
	"bytes"
	"cmp"
	"embed"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

//go:embed *.json
var files embed.FS

// base is where the schemas' ids lie; nothing is read from there.
const base = "https://parley-hub.github.io/schemas/"

// published are the ids of schemas that others have published.
var published = map[string]string{
	"agh-envelope": "https://agh.dev/schemas/network/v0/envelope.schema.json",
}

// idOf is the id of a schema.
func idOf(name string) string {
	if id, ok := published[name]; ok {
		return id
	}
	return base + name + ".json"
}

// Info describes a schema in a list.
type Info struct {
	Name  string `json:"name"`
	ID    string `json:"id"`
	Title string `json:"title"`
}

// ErrUnknown says that there is no schema of a name.
var ErrUnknown = errors.New("schemas: no such schema")

// Names lists the schemas in order.
func Names() []string {
	entries, err := files.ReadDir(".")
	if err != nil {
		return nil // an embedded folder can always be read
	}
	names := make([]string, 0, len(entries))
	for _, e := range entries {
		names = append(names, strings.TrimSuffix(e.Name(), ".json"))
	}
	slices.Sort(names)
	return names
}

// List describes every schema.
func List() ([]Info, error) {
	var list []Info
	for _, name := range Names() {
		compiled, err := compile(name)
		if err != nil {
			return nil, err
		}
		list = append(list, Info{Name: name, ID: idOf(name), Title: compiled.Title})
	}
	return list, nil
}

// Resolve finds the name of a schema: its own, a message's type, or its id.
func Resolve(name string) (string, error) {
	names := Names()
	for known, id := range published {
		if id == name {
			return known, nil
		}
	}
	short := strings.TrimSuffix(strings.TrimPrefix(name, base), ".json")
	for _, candidate := range []string{short, "message." + short} {
		if slices.Contains(names, candidate) {
			return candidate, nil
		}
	}
	return "", fmt.Errorf("%w: %q; there are %s", ErrUnknown, name, strings.Join(names, ", "))
}

// Text is a schema as it is written.
func Text(name string) ([]byte, error) {
	name, err := Resolve(name)
	if err != nil {
		return nil, err
	}
	return files.ReadFile(name + ".json")
}

var (
	mu       sync.Mutex
	compiler *jsonschema.Compiler
)

// compile compiles a schema when it is first used.
func compile(name string) (*jsonschema.Schema, error) {
	mu.Lock()
	defer mu.Unlock()
	if compiler == nil {
		c := jsonschema.NewCompiler()
		for _, file := range Names() {
			text, err := files.ReadFile(file + ".json")
			if err != nil {
				return nil, err
			}
			doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
			if err != nil {
				return nil, err
			}
			if err := c.AddResource(idOf(file), doc); err != nil {
				return nil, err
			}
		}
		compiler = c
	}
	return compiler.Compile(idOf(name))
}

// Validate checks one JSON document. A document that is not JSON, or has a key
// twice, is refused as well.
func Validate(name string, document []byte) error {
	name, err := Resolve(name)
	if err != nil {
		return err
	}
	schema, err := compile(name)
	if err != nil {
		return err
	}
	dec := jsontext.NewDecoder(bytes.NewReader(document))
	if _, err := dec.ReadValue(); err != nil {
		return fmt.Errorf("not valid JSON: %w", err)
	}
	if _, err := dec.ReadToken(); !errors.Is(err, io.EOF) {
		return errors.New("not valid JSON: text follows the value")
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(document))
	if err != nil {
		return fmt.Errorf("not valid JSON: %w", err)
	}
	return schema.Validate(doc)
}

// Problems are the violations, one line each, with their place.
func Problems(err error) []string {
	var invalid *jsonschema.ValidationError
	if !errors.As(err, &invalid) {
		return []string{err.Error()}
	}
	var lines []string
	var walk func(*jsonschema.OutputUnit)
	walk = func(unit *jsonschema.OutputUnit) {
		if unit.Error != nil && len(unit.Errors) == 0 {
			at := cmp.Or(unit.InstanceLocation, "/")
			lines = append(lines, at+": "+unit.Error.String())
		}
		for i := range unit.Errors {
			walk(&unit.Errors[i])
		}
	}
	walk(invalid.DetailedOutput())
	return lines
}
