package runner

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/parley-hub/parley/message"
	"github.com/parley-hub/parley/message/value"
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

// Reveal returns the key itself, for the request that needs it.
func (s Secret) Reveal() string { return s.value }

// Scrub removes the key from a text.
func (s Secret) Scrub(text string) string {
	if len(s.value) < shortest {
		return text
	}
	return strings.ReplaceAll(text, s.value, redacted)
}

// scrubbing removes a key from fragments of texts. What may be the beginning of the
// key waits for the next fragment of the same text.
type scrubbing struct {
	secret      Secret
	show        func(message.Envelope)
	order       []string
	undelivered map[string]message.Envelope
}

// add passes on a fragment without the key.
func (s *scrubbing) add(delta message.Envelope, fragment string) {
	of := value.Text(delta.Payload.At("kind")) + "/" + value.Text(delta.Payload.At("index"))
	before, waiting := s.undelivered[of]
	text, _ := before.Text()
	text = s.secret.Scrub(text + fragment)
	keep := s.secret.begun(text)
	delete(s.undelivered, of)
	if keep > 0 {
		rest := delta
		rest.Content = text[len(text)-keep:]
		if s.undelivered == nil {
			s.undelivered = map[string]message.Envelope{}
		}
		s.undelivered[of] = rest
		if !slices.Contains(s.order, of) {
			s.order = append(s.order, of)
		}
	}
	if text = text[:len(text)-keep]; text != "" || fragment == "" && !waiting {
		delta.Content = text
		s.show(delta)
	}
}

// end passes on what still waits, because the rest of the key did not follow.
func (s *scrubbing) end() {
	for _, of := range s.order {
		if rest, ok := s.undelivered[of]; ok {
			s.show(rest)
		}
	}
}

// begun returns how many bytes at the end of a text may be the beginning of the
// key.
func (s Secret) begun(text string) int {
	if len(s.value) < shortest {
		return 0
	}
	for n := min(len(s.value)-1, len(text)); n > 0; n-- {
		if strings.HasSuffix(text, s.value[:n]) {
			return n
		}
	}
	return 0
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
