package runner

import (
	"fmt"
	"log/slog"
	"strings"
)

// Secret is a provider's key. Every way to print it shows a placeholder.
type Secret struct{ value string }

// redacted stands for a secret.
const redacted = "[redacted]"

// shortest is how long a secret must be to be looked for in texts: shorter
// ones would be found in ordinary words.
const shortest = 8

// NewSecret keeps a key.
func NewSecret(key string) Secret { return Secret{strings.TrimSpace(key)} }

// Reveal is the key itself, for the request that needs it.
func (s Secret) Reveal() string { return s.value }

// Scrub removes the key from a text.
func (s Secret) Scrub(text string) string {
	if len(s.value) < shortest {
		return text
	}
	return strings.ReplaceAll(text, s.value, redacted)
}

// String hides the key.
func (s Secret) String() string { return redacted }

// GoString hides the key.
func (s Secret) GoString() string { return redacted }

// Format hides the key, whatever the verb.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(redacted)) }

// LogValue hides the key.
func (s Secret) LogValue() slog.Value { return slog.StringValue(redacted) }

// MarshalText hides the key.
func (s Secret) MarshalText() ([]byte, error) { return []byte(redacted), nil }
