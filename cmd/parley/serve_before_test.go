package main

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/parley-hub/parley/server/config"
)

// A hub that cannot be served leaves no folder behind.
func TestNothingIsMadeForWhatCannotBeServed(t *testing.T) {
	t.Parallel()
	for want, edit := range map[string]func(*config.Config){
		"is not an address to listen on":       func(c *config.Config) { c.HTTP.Listen = "no host:1" },
		"refused to listen on 0.0.0.0:0":       func(c *config.Config) { c.HTTP.Listen = "0.0.0.0:0" },
		"none.pem: no such file or directory":  func(c *config.Config) { c.TLS.Cert, c.TLS.Key = "none.pem", "none.key" },
		"tls: serve.go and serve.go: ":         func(c *config.Config) { c.TLS.Cert, c.TLS.Key = "serve.go", "serve.go" },
		"there is no key: make one with parle": func(c *config.Config) { c.HTTP.Listen, c.HTTP.BehindProxy = "0.0.0.0:0", true },
	} {
		cfg := allSettings.Default()
		cfg.Data.Dir = filepath.Join(t.TempDir(), "data")
		edit(&cfg)
		err := (&app{}).runHub(t.Context(), cfg, slog.New(slog.DiscardHandler))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
		if _, err := os.Stat(cfg.Data.Dir); !os.IsNotExist(err) {
			t.Errorf("%s: the folder was made (%v)", want, err)
		}
	}
}
