package wire

import (
	"bytes"
	"regexp"
	"slices"
	"strings"

	"github.com/parley-hub/parley/internal/jsonscan"
)

// SecretScan finds what looks like a credential in body, proof and ext. AGH's
// runtime rejects such envelopes, so that a sender does well to look first.
// Its zero value knows the shapes of secrets and none of their values.
type SecretScan struct {
	values []string
}

// minSecret is how long a registered value is at least: a shorter one would be
// found in texts that have nothing to do with it.
const minSecret = 8

// NewSecretScan also finds the values given, those of 8 bytes and more.
func NewSecretScan(values ...string) *SecretScan {
	return &SecretScan{values: slices.DeleteFunc(slices.Clone(values), func(s string) bool { return len(s) < minSecret })}
}

var secretKeys = map[string]bool{
	"apikey": true, "accesstoken": true, "refreshtoken": true, "mcpauthtoken": true, "oauthcode": true,
	"authorizationcode": true, "codeverifier": true, "pkceverifier": true, "secretbinding": true,
	"clientsecret": true, "authorization": true, "password": true, "secret": true, "token": true, "claimtoken": true,
}

// longestSecretKey is without separators, of which a key may have any number;
// letters outside of ASCII may be longer than those they are folded to.
const longestSecretKey = 3 * len("authorizationcode")

var (
	claimToken = regexp.MustCompile(`agh_claim_[A-Za-z0-9_-]+`)
	bearer     = regexp.MustCompile(`(?i)\bbearer\s+[A-Za-z0-9._~+/=-]+`)
	assigned   = regexp.MustCompile(`(?i)\b(?:(?:proxy-)?authorization|api[_-]?key|access[_-]?token|refresh[_-]?token|claim[_-]?token|` +
		`lease[_-]?token|bot[_-]?token|oauth[_-]?code|authorization[_-]?code|client[_-]?secret|webhook[_-]?secret|` +
		`code[_-]?verifier|secret[_-]?binding|token|secret|password)\s*[:=]\s*[^\s:=]`)
)

// check rejects an envelope with something secret in it. The detail says where,
// never what.
func (s *SecretScan) check(e *Envelope) *Rejection {
	for _, part := range [...]struct {
		name string
		raw  []byte
	}{{"body", e.Body}, {"proof", e.Proof}, {"ext", e.Ext}} {
		if part.raw != nil && s.within(part.raw) {
			return malformed(part.name, "holds what looks like a secret; leave it out")
		}
	}
	return nil
}

// within walks one value. Values nest at most MaxDepth, so recursion is
// bounded.
func (s *SecretScan) within(value []byte) bool {
	switch value[0] {
	case '"':
		text, _ := jsonscan.Text(value)
		return s.text(text)
	case '[':
		for element := range jsonscan.Elements(value) {
			if s.within(element) {
				return true
			}
		}
	case '{':
		for name, member := range jsonscan.Members(value) {
			if secretName(name) && !empty(member) || s.text(string(name)) || s.within(member) {
				return true
			}
		}
	}
	return false
}

// HoldsClaimToken reports whether a valid JSON value has a claim token in it: as
// the value of a key of that name, or by its shape in any text.
func HoldsClaimToken(value []byte) bool {
	if len(value) == 0 {
		return false
	}
	switch value[0] {
	case '"':
		text, _ := jsonscan.Text(value)
		return claimToken.MatchString(text)
	case '[':
		for element := range jsonscan.Elements(value) {
			if HoldsClaimToken(element) {
				return true
			}
		}
	case '{':
		for name, member := range jsonscan.Members(value) {
			if plainName(name) == "claimtoken" && !empty(member) || claimToken.Match(name) || HoldsClaimToken(member) {
				return true
			}
		}
	}
	return false
}

// secretName reports whether a key says that its value is a secret.
func secretName(name []byte) bool {
	letters := 0
	for _, c := range name {
		if c != '_' && c != '-' && c != '.' {
			letters++
		}
	}
	if letters > longestSecretKey {
		return false
	}
	return secretKeys[plainName(name)] // none of them contains "hash"
}

// plainName is a key without case and separators.
func plainName(name []byte) string {
	return strings.Map(func(r rune) rune {
		if r == '_' || r == '-' || r == '.' {
			return -1
		}
		return r
	}, strings.ToLower(string(name)))
}

// empty reports whether a value holds nothing: null, a blank text, an array or
// object without entries.
func empty(value []byte) bool {
	switch value[0] {
	case 'n':
		return true
	case '"':
		text, _ := jsonscan.Text(value)
		return blank(text)
	case '[', '{':
		return len(bytes.Trim(value[1:len(value)-1], " \t\r\n")) == 0
	}
	return false
}

// text reports whether a text holds a secret. The expressions run only on what
// has one of the marks they need.
func (s *SecretScan) text(text string) bool {
	if strings.Contains(text, "agh_claim_") && claimToken.MatchString(text) ||
		strings.ContainsAny(text, ":=") && assigned.MatchString(text) ||
		mentionsBearer(text) && bearer.MatchString(text) {
		return true
	}
	return slices.ContainsFunc(s.values, func(value string) bool { return strings.Contains(text, value) })
}

// LooksSecret reports whether a text has the shape of a secret.
func LooksSecret(text string) bool { return new(SecretScan).text(text) }

// mentionsBearer looks for the word without case, by its rarest letter.
func mentionsBearer(text string) bool {
	const word = "bearer"
	for i := 0; i+len(word) <= len(text); i++ {
		if text[i]|0x20 == 'b' && strings.EqualFold(text[i:i+len(word)], word) {
			return true
		}
	}
	return false
}
