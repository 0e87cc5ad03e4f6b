package external

import (
	"strings"

	"github.com/parley-hub/parley/message/value"
)

// fold returns the form in which names of connectors, providers and agents are compared.
func fold(s string) string {
	return value.Trim(value.Lower(strings.ReplaceAll(s, "_", "-")))
}

// slug reads a required name: letters, digits and dashes, no dash first.
func slug(v any) (string, bool) {
	s := fold(value.Text(v))
	if s == "" || s[0] == '-' {
		return "", false
	}
	for i := range len(s) {
		if c := s[i]; (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' {
			return "", false
		}
	}
	return s, true
}
