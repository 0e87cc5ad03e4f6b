package external

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/parley-hub/parley/message/value"
)

// DefaultSignaturePrefix precedes the digits in a signature header.
const DefaultSignaturePrefix = "sha256="

// Signature checks webhooks: HMAC-SHA-256 over the raw body. An empty prefix
// is no prefix, which only bare digits can satisfy.
type Signature struct {
	Secret string
	Prefix string
	// AllowRawHex also takes a header of digits without the prefix.
	AllowRawHex bool
}

// NewSignature returns a Signature with the default prefix.
func NewSignature(secret string) Signature {
	return Signature{Secret: secret, Prefix: DefaultSignaturePrefix}
}

// Valid reports whether the header signs the body. Without a secret nothing is
// valid.
func (s Signature) Valid(body []byte, header string) bool {
	if s.Secret == "" {
		return false
	}
	header = value.Trim(header)
	digits, prefixed := strings.CutPrefix(header, s.Prefix)
	if s.Prefix == "" || !prefixed {
		if !s.AllowRawHex {
			return false
		}
		digits = header
	}
	given, err := hex.DecodeString(value.Trim(digits))
	if err != nil {
		return false
	}
	mac := hmac.New(sha256.New, []byte(s.Secret))
	mac.Write(body)
	return hmac.Equal(given, mac.Sum(nil))
}
