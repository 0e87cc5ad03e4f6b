package config

import "fmt"

// Section has the settings of one dialect as fields of a T. The dialect defines them;
// Config holds the values.
type Section[T any] struct {
	name string
	keys []Key
}

// SectionKey is one setting of a section.
type SectionKey[T any] struct {
	Key   // its name begins with the section's and a dot
	Field func(*T) any
	Check func(value string) error  // of a text, or of each item of a list; nil: all are valid
	Mask  func(value string) string // hides secrets when the value is shown; nil: it has none
}

// NewSection makes the section of a name.
func NewSection[T any](name string, rows ...SectionKey[T]) *Section[T] {
	s := &Section[T]{name: name}
	for _, row := range rows {
		key := row.Key
		key.field = func(c *Config) any { return row.Field(s.Of(c)) }
		key.check, key.mask = row.Check, row.Mask
		s.keys = append(s.keys, key)
	}
	return s
}

// Keys are the section's rows of a table.
func (s *Section[T]) Keys() []Key { return s.keys }

// Of returns the section's values in a configuration; they may be changed. Copies of a
// Config share them.
func (s *Section[T]) Of(c *Config) *T {
	if c.Sections == nil {
		c.Sections = map[string]any{}
	}
	if c.Sections[s.name] == nil {
		c.Sections[s.name] = new(T)
	}
	values, ok := c.Sections[s.name].(*T)
	if !ok {
		panic(fmt.Sprintf("config: two sections are called %s", s.name))
	}
	return values
}
