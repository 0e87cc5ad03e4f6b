// Package valuetest reads and writes values for tests.
package valuetest

import (
	"testing"

	"github.com/parley-hub/parley/message/value"
)

// Decode reads valid JSON.
func Decode(t testing.TB, text string) any {
	t.Helper()
	v, err := value.Decode([]byte(text))
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return v
}

// Write returns a value as JSON, or why it cannot be written.
func Write(v any) string {
	text, err := value.Append(nil, v)
	if err != nil {
		return "unwritable: " + err.Error()
	}
	return string(text)
}
