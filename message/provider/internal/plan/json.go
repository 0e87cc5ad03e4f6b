package plan

import (
	"fmt"

	"github.com/parley-hub/parley/message/provider"
	"github.com/parley-hub/parley/message/value"
)

// Str returns a string member, or "".
func Str(m *value.Map, key string) string { return str(m, key) }

// Map returns an object member, or nil.
func Map(m *value.Map, key string) *value.Map {
	inner, _ := m.At(key).(*value.Map)
	return inner
}

// List returns an array member, or nil.
func List(m *value.Map, key string) []any {
	list, _ := m.At(key).([]any)
	return list
}

// Maps returns the objects of an array member.
func Maps(m *value.Map, key string) []*value.Map {
	var found []*value.Map
	for _, item := range List(m, key) {
		if inner, ok := item.(*value.Map); ok {
			found = append(found, inner)
		}
	}
	return found
}

// Count returns an integer member, or 0.
func Count(m *value.Map, key string) int64 {
	n, _ := value.Integer(m.At(key))
	return n
}

// Rest returns a map without the keys that are understood; nil if none remain.
// Nulls are left out.
func Rest(m *value.Map, known ...string) *value.Map {
	rest := m.Clone()
	for _, key := range known {
		rest.Delete(key)
	}
	for _, key := range rest.Keys() {
		if rest.At(key) == nil {
			rest.Delete(key)
		}
	}
	if rest.Len() == 0 {
		return nil
	}
	return rest
}

// Merge puts a provider's further fields back into a block, without replacing fields
// that it has.
func Merge(m, extra *value.Map) *value.Map {
	for key, v := range extra.All() {
		if !m.Has(key) {
			m.Set(key, v)
		}
	}
	return m
}

// Object decodes a provider's JSON, which is always an object.
func Object(data []byte) (*value.Map, error) {
	v, err := value.Decode(data)
	if err != nil {
		return nil, fmt.Errorf("provider: not valid JSON: %w", err)
	}
	m, ok := v.(*value.Map)
	if !ok {
		return nil, fmt.Errorf("provider: an object was expected, not %.40q", data)
	}
	return m, nil
}

// Reply decodes a provider's answer and reads it.
func Reply(data []byte, o provider.ReadOptions, read func(*value.Map, provider.ReadOptions) provider.Reply) (provider.Reply, error) {
	body, err := Object(data)
	if err != nil {
		return provider.Reply{}, err
	}
	return read(body, o), nil
}

// JSON returns a value as text. A value that was normalized or read can always
// be written.
func JSON(v any) string {
	text, err := value.Append(nil, v)
	if err != nil {
		return "null"
	}
	return string(text)
}
