package identity

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// ClaimHash is the hash of a claim: a salt and a SHA-256, both hex, joined by
// a colon. Its zero value is that of no claim.
type ClaimHash string

// HashClaim hashes a claim under a new salt. The order of its keys and the
// space between them do not count.
func HashClaim(claim []byte) ClaimHash {
	salt := make([]byte, 16)
	_, _ = rand.Read(salt) // never fails: crypto/rand ends the process instead
	return ClaimHash(hex.EncodeToString(salt) + ":" + hashClaim(salt, claim))
}

// Matches reports, in constant time, whether a claim is the one hashed.
func (h ClaimHash) Matches(claim []byte) bool {
	saltHex, want, ok := strings.Cut(string(h), ":")
	if !ok {
		return false
	}
	salt, err := hex.DecodeString(saltHex)
	if err != nil {
		return false
	}
	return subtle.ConstantTimeCompare([]byte(hashClaim(salt, claim)), []byte(want)) == 1
}

func hashClaim(salt, claim []byte) string {
	canonical := jsontext.Value(claim).Clone()
	// Text that is not JSON is hashed unchanged: it matches only itself.
	_ = canonical.Canonicalize(jsontext.CanonicalizeRawInts(false), jsontext.CanonicalizeRawFloats(false))
	sum := sha256.New()
	sum.Write(salt)
	sum.Write(canonical)
	return hex.EncodeToString(sum.Sum(nil))
}
