//go:build unix

package contexts_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/parley-hub/parley/internal/contexts"
)

func TestAFileThatOthersReadIsRefused(t *testing.T) {
	t.Parallel()
	for _, mode := range []os.FileMode{0o640, 0o604} {
		path := filepath.Join(t.TempDir(), "contexts.yaml")
		if err := os.WriteFile(path, []byte("contexts: []\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		if _, err := contexts.Load(path); err == nil || !strings.Contains(err.Error(), "chmod 600") {
			t.Errorf("%o: %v", mode, err)
		}
	}
}
