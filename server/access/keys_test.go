package access_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/server/access"
)

func open(t *testing.T, dir string) *access.Keys {
	t.Helper()
	keys, err := access.OpenKeys(dir)
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

func add(t *testing.T, keys *access.Keys, role access.Role, agent string) (string, access.Key) {
	t.Helper()
	token, key, err := keys.Add(role, agent)
	if err != nil {
		t.Fatal(err)
	}
	return token, key
}

func TestKeysSurviveReopening(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	keys := open(t, dir)
	if keys.Claimed() || keys.Len() != 0 || len(keys.List()) != 0 {
		t.Fatal("a new folder has keys")
	}
	operator, op := add(t, keys, access.Operator, "")
	alice, al := add(t, keys, access.Agent, "alice")

	again := open(t, dir)
	for _, k := range []*access.Keys{keys, again} {
		if diff := cmp.Diff([]access.Key{op, al}, k.List(), cmpopts.EquateApproxTime(0)); diff != "" {
			t.Errorf("keys (-want +got):\n%s", diff)
		}
		if got, ok := k.Resolve(operator); !ok || got.ID != op.ID || got.Role != access.Operator || got.Agent != "" {
			t.Errorf("operator's token resolves to %+v, %v", got, ok)
		}
		if got, ok := k.Resolve(alice); !ok || got.ID != al.ID || got.Role != access.Agent || got.Agent != "alice" {
			t.Errorf("alice's token resolves to %+v, %v", got, ok)
		}
		if !k.Claimed() || k.Len() != 2 {
			t.Errorf("claimed %v with %d keys", k.Claimed(), k.Len())
		}
	}
	if time.Since(op.Created) > time.Minute || op.Created.Location() != time.UTC {
		t.Errorf("created at %v", op.Created)
	}
}

func TestTokensAreStoredHashed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	token, key := add(t, open(t, dir), access.Reader, "")
	raw, err := os.ReadFile(filepath.Join(dir, access.KeysFile))
	if err != nil {
		t.Fatal(err)
	}
	secret := token[strings.LastIndex(token, "_"+key.ID+"_")+1+len(key.ID)+1:]
	if len(secret) < 40 {
		t.Fatalf("the secret part of %q is short", token)
	}
	if bytes.Contains(raw, []byte(secret)) {
		t.Error("the file has the token's secret")
	}
	info, err := os.Stat(filepath.Join(dir, access.KeysFile))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v; want 0600", info.Mode(), err)
	}
	left, err := filepath.Glob(filepath.Join(dir, "*.new"))
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestResolveRefusesEverythingElse(t *testing.T) {
	t.Parallel()
	keys := open(t, t.TempDir())
	first, one := add(t, keys, access.Reader, "")
	_, two := add(t, keys, access.Operator, "")
	flipped := []byte(first)
	flipped[len(flipped)-5] ^= 1
	for name, token := range map[string]string{
		"empty":            "",
		"cut":              first[:len(first)-1],
		"longer":           first + "x",
		"one bit flipped":  string(flipped),
		"another key's id": strings.Replace(first, one.ID, two.ID, 1),
		"without prefix":   strings.TrimPrefix(first, "parley_"),
		"id alone":         "parley_" + one.ID,
		"no secret":        "parley_" + one.ID + "_",
		"unknown id":       strings.Replace(first, one.ID, "000000000000", 1),
	} {
		if got, ok := keys.Resolve(token); ok {
			t.Errorf("%s: resolved to %+v", name, got)
		}
	}
}

func TestAgentKeys(t *testing.T) {
	t.Parallel()
	keys := open(t, t.TempDir())
	alice, _ := add(t, keys, access.Agent, "alice")
	rotated, _ := add(t, keys, access.Agent, "alice")
	operator, _ := add(t, keys, access.Operator, "")
	for _, tc := range []struct {
		name, token string
		want        bool
	}{
		{"alice", alice, true},
		{"alice", rotated, true},
		{"bob", alice, false},
		{"alice", operator, false},
		{"", operator, false},
		{"alice", "", false},
	} {
		if got := keys.VerifyAgent(tc.name, tc.token); got != tc.want {
			t.Errorf("token verifies %q: %v, want %v", tc.name, got, tc.want)
		}
	}
	if !keys.HasAgent("alice") || keys.HasAgent("bob") || keys.HasAgent("") {
		t.Error("HasAgent mixes agents up")
	}
}

func TestRevoke(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	keys := open(t, dir)
	token, key := add(t, keys, access.Operator, "")
	if got, err := keys.Revoke(key.ID); err != nil || got.ID != key.ID {
		t.Fatalf("revoked %+v, %v", got, err)
	}
	_, err := keys.Revoke(key.ID)
	if fault.CodeOf(err) != fault.NotFound || !strings.Contains(err.Error(), key.ID) {
		t.Errorf("revoking again: %v", err)
	}
	for _, k := range []*access.Keys{keys, open(t, dir)} {
		if _, ok := k.Resolve(token); ok || k.Len() != 0 {
			t.Error("a revoked token still resolves")
		}
		if !k.Claimed() {
			t.Error("revoking the last key made loopback operator again")
		}
	}
}

// A name that a key was made for stays keyed, also after the last key of it is
// revoked and after a restart.
func TestNamesStayKeyed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	keys := open(t, dir)
	changes := 0
	keys.OnChange(func() { changes++ })
	_, key := add(t, keys, access.Agent, "alice")
	if _, err := keys.Revoke(key.ID); err != nil {
		t.Fatal(err)
	}
	add(t, keys, access.Reader, "")
	if _, err := keys.Revoke("none"); err == nil {
		t.Error("an unknown key was revoked")
	}
	for _, k := range []*access.Keys{keys, open(t, dir)} {
		if !k.HasAgent("alice") || k.HasAgent("bob") {
			t.Error("alice is keyed no more, or bob is")
		}
	}
	if changes != 3 {
		t.Errorf("told of %d changes, want 3", changes)
	}
	// A file of the version before tells by its keys.
	old := t.TempDir()
	raw := `{"version":1,"keys":[{"id":"0a","role":"agent","agent":"carol","created":"2026-03-09T10:15:42Z","salt":"","hash":""}]}`
	if err := os.WriteFile(filepath.Join(old, access.KeysFile), []byte(raw), 0o600); err != nil {
		t.Fatal(err)
	}
	carols := open(t, old)
	if _, err := carols.Revoke("0a"); err != nil || !carols.HasAgent("carol") || !open(t, old).HasAgent("carol") {
		t.Errorf("carol is keyed no more (%v)", err)
	}
}

func TestRefusedGrants(t *testing.T) {
	t.Parallel()
	keys := open(t, t.TempDir())
	for _, tc := range []struct {
		role  access.Role
		agent string
		want  string
	}{
		{"boss", "", `"boss" is no role: it is operator or reader`},
		{access.Anonymous, "", "is no role"},
		{access.Agent, "", "is no agent's name"},
		{access.Agent, "a\nb", "is no agent's name"},
		{access.Agent, "a\xff", "is no agent's name"},
		{access.Agent, strings.Repeat("a", 257), "is no agent's name"},
		{access.Operator, "alice", "not for both"},
		{access.Reader, "alice", "not for both"},
	} {
		if _, _, err := keys.Add(tc.role, tc.agent); fault.CodeOf(err) != fault.Invalid || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%q for %q: %v", tc.role, tc.agent, err)
		}
	}
	if keys.Len() != 0 || keys.Claimed() {
		t.Error("a refused grant left a key")
	}
	if _, _, err := keys.Add(access.Agent, strings.Repeat("a", 256)); err != nil {
		t.Errorf("the longest name: %v", err)
	}
}

func TestBadFiles(t *testing.T) {
	t.Parallel()
	for content, want := range map[string]string{
		`{"version":3,"keys":[]}`: "has format 3; this parley reads formats 1 to 2",
		`{"keys":[]}`:             "has format 0; this parley reads formats 1 to 2",
		`{"version":1,"keys":[`:   "is damaged",
		``:                        "is damaged",
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, access.KeysFile), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := access.OpenKeys(dir); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %q", content, err, want)
		}
	}
}

func TestFailedWriteChangesNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	keys := open(t, dir)
	token, key := add(t, keys, access.Operator, "")
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if _, _, err := keys.Add(access.Reader, ""); err == nil {
		t.Error("a key that could not be stored was handed out")
	}
	if _, err := keys.Revoke(key.ID); err == nil {
		t.Error("a revocation that could not be stored was reported as done")
	}
	if _, ok := keys.Resolve(token); !ok || keys.Len() != 1 {
		t.Error("a failed write changed the keys in force")
	}
}

func TestConcurrentUse(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	keys := open(t, dir)
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			token, key, err := keys.Add(access.Reader, "")
			if err != nil {
				t.Error(err)
				return
			}
			if got, ok := keys.Resolve(token); !ok || got.ID != key.ID {
				t.Errorf("resolved %+v", got)
			}
			keys.List()
		})
	}
	group.Wait()
	if n := open(t, dir).Len(); n != 8 {
		t.Errorf("%d keys, want 8", n)
	}
}

func TestWhatStands(t *testing.T) {
	t.Parallel()
	keys := open(t, t.TempDir())
	here := access.Principal{Role: access.Operator, Loopback: true}
	if !keys.Stands(here) || !keys.Stands(access.Principal{}) {
		t.Error("without keys loopback is operator, and nobody is nobody")
	}
	_, key := add(t, keys, access.Operator, "")
	holder := access.Principal{Role: access.Operator, Key: key.ID}
	if keys.Stands(here) || !keys.Stands(holder) {
		t.Error("with the first key its holder is operator, and loopback no more")
	}
	if _, err := keys.Revoke(key.ID); err != nil {
		t.Fatal(err)
	}
	if keys.Stands(here) || keys.Stands(holder) || !keys.Stands(access.Principal{}) {
		t.Error("with a revoked key nobody is operator")
	}
}
