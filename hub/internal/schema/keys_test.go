package schema_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/parley-hub/parley/hub/internal/schema"
)

// Claims are stored, so the computation of their names must never change.
func TestDigestsStay(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 1000)
	for want, got := range map[string]string{
		"e3b0c44298fc1c149afbf4c8996fb92427ae41e4":      schema.Digest(),
		"3fafa1cf2f19a7c1129beb20cf0983f73a489a22":      schema.Digest("a", "bc"),
		"601d5476e2ccfe2c87a2bba7a322659734a05749":      schema.Digest("ab", "c"),
		"bb4c92dceef09a71759b3c0ac669047a559c4955":      schema.Digest(long, "", long),
		"name/6ea988ee737a68d0fb1d7bb76040e804e93de8e7": schema.NameClaim("alice"),
		"key/5f44451df22a240f0314cadfd084bf6e6976f9d5":  schema.IdempotencyClaim("channel", "sender", long),
		"key/2ab444bd36a68523320e967f6d193508106ac854":  schema.HomeKeyClaim("home", "key"),
		"key/d1a1f0c79e5d402f7a7aeed64e5e5b51bdea0cc2":  schema.OpeningKeyClaim("home", "kind", "creator", "key"),
	} {
		if got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

// Keys with a time sort as the times do, and are stored, so they must never change.
func TestKeysWithATimeStay(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 18, 20, 2, 52, 191367000, time.UTC)
	for want, got := range map[string][]byte{
		"due/ttl/18e93c4007dd3f58/id":  schema.DueKey(schema.DueTTL, at, "id"),
		"active/18e93c4007dd3f58/own":  schema.ActiveKey(at, "own"),
		"active/0000000000000000/own":  schema.ActiveKey(time.Unix(-1, 0), "own"),
		"active/7fffffffffffffff/last": schema.ActiveKey(time.Unix(0, math.MaxInt64), "last"),
	} {
		if string(got) != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}
