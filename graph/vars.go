package graph

import (
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// Vars is a channel's context variables: an immutable map from keys to JSON
// values, kept as text. Its zero value is empty.
type Vars struct {
	entries []Var // sorted by key
	size    int
}

// Var is one context variable. Value is JSON without whitespace around tokens.
type Var struct {
	Key   string
	Value string
}

// Update is a change of context variables: deletes first, then sets, so that a
// key in both ends up set.
type Update struct {
	Set    []Var
	Delete []string
}

// ParseVars reads the initial variables from a JSON object.
func ParseVars(raw []byte) (Vars, error) {
	v := jsontext.Value(raw)
	if !v.IsValid() || v.Kind() != jsontext.KindBeginObject {
		return Vars{}, fmt.Errorf("graph: context_vars must be a JSON object, not %s", kindOf(v))
	}
	var u Update
	if err := u.readSet(v); err != nil {
		return Vars{}, err
	}
	return Vars{}.With(u), nil
}

// Get returns the variable's JSON text.
func (v Vars) Get(key string) (raw string, ok bool) {
	i, ok := v.find(key)
	if !ok {
		return "", false
	}
	return v.entries[i].Value, true
}

func (v Vars) orNull(key string) string {
	if raw, ok := v.Get(key); ok {
		return raw
	}
	return "null"
}

func (v Vars) find(key string) (int, bool) {
	return slices.BinarySearchFunc(v.entries, key, func(e Var, key string) int {
		return strings.Compare(e.Key, key)
	})
}

// Len returns the number of variables.
func (v Vars) Len() int { return len(v.entries) }

// Size returns the number of bytes of all keys and values, for a bound on them.
func (v Vars) Size() int { return v.size }

// All yields the variables sorted by key.
func (v Vars) All() iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		for _, e := range v.entries {
			if !yield(e.Key, e.Value) {
				return
			}
		}
	}
}

// Equal reports whether both hold the same keys with the same texts.
func (v Vars) Equal(other Vars) bool { return slices.Equal(v.entries, other.entries) }

// MarshalJSON writes an object sorted by key.
func (v Vars) MarshalJSON() ([]byte, error) {
	out := []byte{'{'}
	for i, e := range v.entries {
		if i > 0 {
			out = append(out, ',')
		}
		var err error
		if out, err = jsontext.AppendQuote(out, e.Key); err != nil {
			return nil, err
		}
		out = append(append(out, ':'), e.Value...)
	}
	return append(out, '}'), nil
}

// With returns the variables after the update; v itself stays as it is.
func (v Vars) With(u Update) Vars {
	if len(u.Set) == 0 && len(u.Delete) == 0 {
		return v
	}
	changes := make([]change, 0, len(u.Set)+len(u.Delete))
	for _, key := range u.Delete {
		changes = append(changes, change{Var: Var{Key: key}, gone: true})
	}
	for _, e := range u.Set {
		changes = append(changes, change{Var: e})
	}
	slices.SortStableFunc(changes, func(a, b change) int { return strings.Compare(a.Key, b.Key) })
	return v.merge(changes)
}

type change struct {
	Var
	gone bool
}

// merge walks both sorted lists once; of several changes to one key the last
// one counts.
func (v Vars) merge(changes []change) Vars {
	merged := Vars{entries: make([]Var, 0, len(v.entries)+len(changes))}
	old := v.entries
	for i, c := range changes {
		for len(old) > 0 && old[0].Key < c.Key {
			merged.add(old[0])
			old = old[1:]
		}
		if len(old) > 0 && old[0].Key == c.Key {
			old = old[1:]
		}
		if last := i+1 == len(changes) || changes[i+1].Key != c.Key; last && !c.gone {
			merged.add(c.Var)
		}
	}
	for _, e := range old {
		merged.add(e)
	}
	merged.entries = slices.Clip(merged.entries)
	return merged
}

func (v *Vars) add(e Var) {
	v.entries = append(v.entries, e)
	v.size += len(e.Key) + len(e.Value)
}
