package main

import (
	"bytes"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	v1 "github.com/parley-hub/parley/client/v1"
)

// auditWrites are the ways in which code names the kind of an audit record.
var auditWrites = regexp.MustCompile(`(?:b\.audit|auditRecord|AuditRecord|AuditIn|Hub\.Audit|h\.Audit|noteOf)\([^"\n]*"([a-z_]+)"` +
	`|AuditNote\{+Kind: "([a-z_]+)"|[aA]udit[A-Z][a-z]+ = "([a-z_]+)"|\t\}, "([a-z]+_[a-z_]*set)"\)|kind :?= "(channel_[a-z]+)"`)

// parley audit --kind refuses what is not in its list, so the list must be complete.
func TestTheKindsOfTheAuditAreListed(t *testing.T) {
	t.Parallel()
	var written []string
	for _, dir := range []string{"hub", "server", "dialect", "cmd", "adapter", "agent", "journal"} {
		err := filepath.WalkDir(filepath.Join("..", "..", dir), func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			source, err := os.ReadFile(path)
			if !bytes.Contains(source, []byte("udit")) {
				return err
			}
			for _, match := range auditWrites.FindAllSubmatch(source, -1) {
				for _, kind := range match[1:] {
					if len(kind) > 0 {
						written = append(written, string(kind))
					}
				}
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	slices.Sort(written)
	if written = slices.Compact(written); !slices.Equal(written, hubAuditKinds) {
		t.Errorf("the hub writes records of the kinds\n%q\nand the command knows\n%q", written, hubAuditKinds)
	}
}

// A program that embeds a hub writes kinds of its own.
func TestAKindThatTheAuditHoldsIsKnown(t *testing.T) {
	t.Parallel()
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		records := `[{"at":"2026-03-09T10:15:42Z","kind":"own_kind"}]`
		if kind := r.URL.Query().Get("kind"); kind != "" && kind != "own_kind" {
			records = "[]"
		}
		fmt.Fprintf(w, `{"records":%s,"next":"","prev":"","position":""}`, records)
	}))
	t.Cleanup(site.Close)
	hub, err := v1.New(site.URL, v1.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, known := range []string{"", "own_kind", "channel_closed"} {
		if err := checkAuditKind(t.Context(), hub, known); err != nil {
			t.Errorf("%q: %v", known, err)
		}
	}
	if err := checkAuditKind(t.Context(), hub, "owm_kind"); err == nil || !strings.Contains(err.Error(), "own_kind") || !strings.Contains(err.Error(), "channel_closed") {
		t.Errorf("a kind that is in no record: %v", err)
	}
}
