package access_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub"
	"github.com/parley-hub/parley/journal/mem"
	"github.com/parley-hub/parley/server/access"
)

// shelf is a hub with a data folder, in which keys are kept.
type shelf struct {
	*hub.Hub
	engine *mem.Engine
	dir    string
}

func newShelf(t *testing.T) *shelf {
	t.Helper()
	engine, err := mem.Open(mem.Options{})
	if err != nil {
		t.Fatal(err)
	}
	h, err := hub.Open(t.Context(), engine, hub.Options{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		h.Close()
		_ = engine.Close()
	})
	return &shelf{h, engine, t.TempDir()}
}

// open reads the keys as a hub that starts does.
func (s *shelf) open(t *testing.T) *access.Keys {
	t.Helper()
	keys := access.NewKeys()
	if err := keys.Load(t.Context(), s, s.dir); err != nil {
		t.Fatal(err)
	}
	return keys
}

// file writes the file of keys that versions before kept.
func (s *shelf) file(t *testing.T, content string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(s.dir, access.KeysFile), []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// everything returns all of the store, as text.
func (s *shelf) everything(t *testing.T) string {
	t.Helper()
	var all strings.Builder
	for _, kind := range []string{"access-key", "keyed-name", "access-state"} {
		list, _, err := s.Documents(t.Context(), kind, hub.DocumentPage{Limit: 1000})
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range list {
			fmt.Fprintln(&all, kind, d.Name, string(d.Data))
		}
	}
	lines, _, err := s.AuditLog(t.Context(), hub.AuditQuery{})
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range lines {
		fmt.Fprintln(&all, string(line.Data))
	}
	return all.String()
}

func add(t *testing.T, keys *access.Keys, role access.Role, agent string) (string, access.Key) {
	t.Helper()
	token, key, err := keys.Add(t.Context(), role, agent, nil)
	if err != nil {
		t.Fatal(err)
	}
	return token, key
}

func TestKeysSurviveReopening(t *testing.T) {
	t.Parallel()
	shelf := newShelf(t)
	keys := shelf.open(t)
	if keys.Claimed() || keys.Len() != 0 || len(keys.List()) != 0 {
		t.Fatal("a new folder has keys")
	}
	operator, op := add(t, keys, access.Operator, "")
	alice, al := add(t, keys, access.Agent, "alice")

	again := shelf.open(t)
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
	shelf := newShelf(t)
	token, key := add(t, shelf.open(t), access.Reader, "")
	secret := token[strings.LastIndex(token, "_"+key.ID+"_")+1+len(key.ID)+1:]
	if len(secret) < 40 {
		t.Fatalf("the secret part of %q is short", token)
	}
	if all := shelf.everything(t); strings.Contains(all, secret) || !strings.Contains(all, key.ID) {
		t.Errorf("the store has the token's secret, or not the key:\n%s", all)
	}
}

// What is done to keys is audited with who did it, in the same batch.
func TestKeysAreAudited(t *testing.T) {
	t.Parallel()
	shelf := newShelf(t)
	keys := shelf.open(t)
	by := access.Principal{Role: access.Operator, Key: "boss"}.Caller()
	_, alice, err := keys.Add(t.Context(), access.Agent, "alice", by)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := keys.Revoke(t.Context(), alice.ID, access.Principal{Role: access.Operator, Loopback: true}.Caller()); err != nil {
		t.Fatal(err)
	}
	lines, _, err := shelf.AuditLog(t.Context(), hub.AuditQuery{})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, line := range lines {
		var record map[string]any
		if err := json.Unmarshal(line.Data, &record); err != nil {
			t.Fatal(err)
		}
		delete(record, "at")
		got = append(got, fmt.Sprint(record))
	}
	want := []string{
		"map[agent:alice by:map[key:boss role:operator] key:" + alice.ID + " kind:key_added role:agent]",
		"map[agent:alice by:map[role:operator] key:" + alice.ID + " kind:key_revoked role:agent]",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("audit (-want +got):\n%s", diff)
	}
}

func TestResolveRefusesEverythingElse(t *testing.T) {
	t.Parallel()
	keys := access.NewKeys()
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
	keys := access.NewKeys()
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
	shelf := newShelf(t)
	keys := shelf.open(t)
	token, key := add(t, keys, access.Operator, "")
	if got, err := keys.Revoke(t.Context(), key.ID, nil); err != nil || got.ID != key.ID {
		t.Fatalf("revoked %+v, %v", got, err)
	}
	_, err := keys.Revoke(t.Context(), key.ID, nil)
	if fault.CodeOf(err) != fault.NotFound || !strings.Contains(err.Error(), key.ID) {
		t.Errorf("revoking again: %v", err)
	}
	for _, k := range []*access.Keys{keys, shelf.open(t)} {
		if _, ok := k.Resolve(token); ok || k.Len() != 0 {
			t.Error("a revoked token still resolves")
		}
		if !k.Claimed() {
			t.Error("revoking the last key made loopback operator again")
		}
	}
}

// A name that a key was made for needs a key, also after its last key is
// revoked and after a restart.
func TestNamesStayKeyed(t *testing.T) {
	t.Parallel()
	shelf := newShelf(t)
	keys := shelf.open(t)
	changes := 0
	keys.OnChange(func() { changes++ })
	_, key := add(t, keys, access.Agent, "alice")
	if _, err := keys.Revoke(t.Context(), key.ID, nil); err != nil {
		t.Fatal(err)
	}
	add(t, keys, access.Reader, "")
	if _, err := keys.Revoke(t.Context(), "none", nil); err == nil {
		t.Error("an unknown key was revoked")
	}
	for _, k := range []*access.Keys{keys, shelf.open(t)} {
		if !k.HasAgent("alice") || k.HasAgent("bob") {
			t.Error("alice is keyed no more, or bob is")
		}
	}
	if changes != 3 {
		t.Errorf("told of %d changes, want 3", changes)
	}
}

// The file of keys is imported once. What is revoked then does not come back with
// it, and its names stay keyed.
func TestTheFileIsImportedOnce(t *testing.T) {
	t.Parallel()
	const token = "parley_0a_secret"
	salt := "00ff"
	sum := sha256.Sum256(append([]byte{0x00, 0xff}, token...))
	var entries []string
	for i := range 100 {
		entries = append(entries, fmt.Sprintf(`{"id":"%02d","role":"reader","created":"2026-03-09T10:15:42Z","salt":"","hash":""}`, i))
	}
	entries = append(entries, fmt.Sprintf(`{"id":"0a","role":"agent","agent":"carol","created":"2026-03-09T10:15:42Z","salt":"%s","hash":"%s"}`, salt, hex.EncodeToString(sum[:])))
	content := `{"version":1,"keys":[` + strings.Join(entries, ",") + `]}`
	shelf := newShelf(t)
	shelf.file(t, content)
	keys := shelf.open(t)
	if got, ok := keys.Resolve(token); !ok || got.Agent != "carol" || keys.Len() != 101 || !keys.Claimed() || keys.List()[100].ID != "0a" || keys.List()[7].ID != "07" {
		t.Fatalf("imported %d keys; the token is %+v's", keys.Len(), got)
	}
	if _, err := os.Stat(filepath.Join(shelf.dir, access.KeysFile)); !os.IsNotExist(err) {
		t.Errorf("the file is still there: %v", err)
	}
	if _, err := keys.Revoke(t.Context(), "0a", nil); err != nil {
		t.Fatal(err)
	}
	shelf.file(t, content) // somebody puts it back
	for range 2 {
		again := shelf.open(t)
		if _, ok := again.Resolve(token); ok || again.Len() != 100 || !again.HasAgent("carol") {
			t.Errorf("a revoked key came back, or its name is open: %d keys", again.Len())
		}
	}
	if all := shelf.everything(t); strings.Count(all, `"kind":"keys_imported"`) != 1 {
		t.Errorf("imported more than once:\n%s", all)
	}
	// Version 2 lists names whose keys are gone.
	second := newShelf(t)
	second.file(t, `{"version":2,"keys":[],"agents":["dave"]}`)
	if keys := second.open(t); !keys.HasAgent("dave") || keys.Len() != 0 || !keys.Claimed() {
		t.Error("dave is keyed no more")
	}
}

func TestRefusedGrants(t *testing.T) {
	t.Parallel()
	keys := access.NewKeys()
	for _, tc := range []struct {
		role  access.Role
		agent string
		want  string
	}{
		{"boss", "", `"boss" is not a role: it is operator or reader`},
		{access.Anonymous, "", "is not a role"},
		{access.Agent, "", "is not an agent's name"},
		{access.Agent, "a\nb", "is not an agent's name"},
		{access.Agent, "a\xff", "is not an agent's name"},
		{access.Agent, strings.Repeat("a", 257), "is not an agent's name"},
		{access.Operator, "alice", "not for both"},
		{access.Reader, "alice", "not for both"},
	} {
		if _, _, err := keys.Add(t.Context(), tc.role, tc.agent, nil); fault.CodeOf(err) != fault.Invalid || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%q for %q: %v", tc.role, tc.agent, err)
		}
	}
	if keys.Len() != 0 || keys.Claimed() {
		t.Error("a refused grant left a key")
	}
	if _, _, err := keys.Add(t.Context(), access.Agent, strings.Repeat("a", 256), nil); err != nil {
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
		shelf := newShelf(t)
		shelf.file(t, content)
		if err := access.NewKeys().Load(t.Context(), shelf, shelf.dir); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %q", content, err, want)
		}
	}
}

func TestFailedWriteChangesNothing(t *testing.T) {
	t.Parallel()
	shelf := newShelf(t)
	keys := shelf.open(t)
	token, key := add(t, keys, access.Operator, "")
	shelf.engine.Faults().Crash()
	if _, _, err := keys.Add(t.Context(), access.Reader, "", nil); err == nil {
		t.Error("a key that could not be stored was handed out")
	}
	if _, err := keys.Revoke(t.Context(), key.ID, nil); err == nil {
		t.Error("a revocation that could not be stored was reported as done")
	}
	if _, ok := keys.Resolve(token); !ok || keys.Len() != 1 {
		t.Error("a failed write changed the keys in force")
	}
}

func TestConcurrentUse(t *testing.T) {
	t.Parallel()
	shelf := newShelf(t)
	keys := shelf.open(t)
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			token, key, err := keys.Add(t.Context(), access.Reader, "", nil)
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
	if n := shelf.open(t).Len(); n != 8 {
		t.Errorf("%d keys, want 8", n)
	}
}

func TestWhatStands(t *testing.T) {
	t.Parallel()
	keys := access.NewKeys()
	here := access.Principal{Role: access.Operator, Loopback: true}
	if !keys.Stands(here) || !keys.Stands(access.Principal{}) {
		t.Error("without keys loopback is operator, and nobody is nobody")
	}
	_, key := add(t, keys, access.Operator, "")
	holder := access.Principal{Role: access.Operator, Key: key.ID}
	if keys.Stands(here) || !keys.Stands(holder) {
		t.Error("with the first key its holder is operator, and loopback no more")
	}
	if _, err := keys.Revoke(t.Context(), key.ID, nil); err != nil {
		t.Fatal(err)
	}
	if keys.Stands(here) || keys.Stands(holder) || !keys.Stands(access.Principal{}) {
		t.Error("with a revoked key nobody is operator")
	}
}
