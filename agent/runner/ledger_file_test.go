package runner_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/parley-hub/parley/agent/runner"
	"github.com/parley-hub/parley/fault"
)

func TestFileLedger(t *testing.T) {
	t.Parallel()
	file := runner.FileLedger(filepath.Join(t.TempDir(), "budget.json"))
	if s, err := file.Load(t.Context()); err != nil || s != (runner.Spent{}) {
		t.Errorf("got %+v, %v", s, err)
	}
	want := runner.Spent{Version: 1, Tokens: 3, Money: 7, Turns: 1, Since: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	for range 2 {
		if err := file.Save(t.Context(), want); err != nil {
			t.Fatal(err)
		}
	}
	if s, err := file.Load(t.Context()); err != nil || s != want {
		t.Errorf("got %+v, %v", s, err)
	}
	left, err := filepath.Glob(string(file) + "*")
	if err != nil || len(left) != 1 {
		t.Errorf("left %v, %v", left, err)
	}
	if err := os.WriteFile(string(file), []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := file.Load(t.Context()); fault.CodeOf(err) != fault.Invalid {
		t.Errorf("got %v", err)
	}
}
