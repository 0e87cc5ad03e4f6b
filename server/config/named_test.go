package config_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/parley-hub/parley/server/config"
)

// Refusals name the key of the limit that they met in parentheses.
var namedLimit = regexp.MustCompile(`"[^"\n]*\(((?:[a-z0-9_]+\.)*limits\.[a-z0-9_]+)\)[^"\n]*"`)

// Whoever meets a limit is told a key that can be set.
func TestRefusalsNameKeysThatExist(t *testing.T) {
	t.Parallel()
	known := func(name string) bool {
		return slices.ContainsFunc(everything, func(k config.Key) bool { return k.Name == name })
	}
	met := 0
	err := filepath.WalkDir("../..", func(file string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if name := entry.Name(); entry.IsDir() && (name == "build" || name == "bin" || strings.HasPrefix(name, ".")) && file != "../.." {
			return fs.SkipDir
		}
		if !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") {
			return nil
		}
		source, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		for _, found := range namedLimit.FindAllSubmatch(source, -1) {
			met++
			if name := string(found[1]); !known(name) {
				t.Errorf("%s: a refusal names %s, which is no key", file, name)
			}
		}
		return nil
	})
	if err != nil || met < 10 {
		t.Fatalf("%d refusals with a key were found, %v", met, err)
	}
}
