package contexts_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/parley-hub/parley/internal/contexts"
)

func load(t *testing.T, path string) *contexts.File {
	t.Helper()
	f, err := contexts.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestContextsAreKept(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "sub", "contexts.yaml")
	f := load(t, path)
	for _, c := range []contexts.Context{{Name: "prod", Hub: "https://hub.example", Token: "secret", CA: "/ca.pem"}, {Name: "dev", Hub: "http://127.0.0.1:7440", TokenEnv: "DEV"}} {
		if err := f.Add(c); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"prod", "dev", "-"} {
		if err := f.Use(name); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Save(); err != nil {
		t.Fatal(err)
	}
	again := load(t, path)
	if again.Current != "prod" || again.Previous != "dev" || len(again.Contexts) != 2 {
		t.Errorf("%+v", again)
	}
	if c, err := again.Find("prod"); err != nil || c.Token != "secret" || c.CA != "/ca.pem" {
		t.Errorf("%+v, %v", c, err)
	}
	if err := again.Remove("prod"); err != nil || again.Current != "" || len(again.Contexts) != 1 {
		t.Errorf("%+v, %v", again, err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
}

func TestWhereTheFileIs(t *testing.T) {
	t.Parallel()
	for want, env := range map[string]map[string]string{
		"/x/parley/contexts.yaml":         {"XDG_CONFIG_HOME": "/x", "HOME": "/h"},
		"/h/.config/parley/contexts.yaml": {"HOME": "/h"},
		"":                                {},
	} {
		if got := contexts.Path(func(name string) string { return env[name] }); got != filepath.FromSlash(want) {
			t.Errorf("%v: %q, want %q", env, got, want)
		}
	}
}

func TestContextsRefuse(t *testing.T) {
	t.Parallel()
	f := load(t, filepath.Join(t.TempDir(), "contexts.yaml"))
	for what, err := range map[string]error{
		"parley context add": func() error { _, err := f.Find("x"); return err }(),
		"is not a name":      f.Add(contexts.Context{Name: "../x"}),
		"used before":        f.Use("-"),
		"no context \"y\"":   f.Remove("y"),
	} {
		if err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("%v does not say %q", err, what)
		}
	}
	bad := filepath.Join(t.TempDir(), "bad.yaml")
	if err := os.WriteFile(bad, []byte("colour: x\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := contexts.Load(bad); err == nil || !strings.Contains(err.Error(), "colour") {
		t.Errorf("a misspelt key: %v", err)
	}
}
