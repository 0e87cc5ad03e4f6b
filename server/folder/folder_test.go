package folder_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/parley-hub/parley/server/folder"
)

func TestOnlyOneHolds(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "new", "data")
	first, err := folder.Hold(dir)
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(dir)
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("folder mode %v, %v", info.Mode(), err)
	}

	if holder, held, err := folder.Look(dir); err != nil || !held || holder.PID != os.Getpid() {
		t.Errorf("Look: %+v, %v, %v", holder, held, err)
	}
	var inUse *folder.InUseError
	if _, err = folder.Hold(dir); !errors.As(err, &inUse) || inUse.Holder != (folder.Holder{PID: os.Getpid()}) {
		t.Fatalf("second: %v", err)
	}
	if err := first.Announce("http://127.0.0.1:7440"); err != nil {
		t.Fatal(err)
	}
	if _, err = folder.Hold(dir); !errors.As(err, &inUse) || inUse.Holder != (folder.Holder{PID: os.Getpid(), URL: "http://127.0.0.1:7440"}) {
		t.Fatalf("second, after the first announced: %v", err)
	}
	if err := first.Release(); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{dir, t.TempDir(), filepath.Join(dir, "missing")} {
		if holder, held, err := folder.Look(dir); err != nil || held || holder != (folder.Holder{}) {
			t.Errorf("Look at a free folder: %+v, %v, %v", holder, held, err)
		}
	}
	again, err := folder.Hold(dir)
	if err != nil {
		t.Fatalf("after release: %v", err)
	}
	if err := again.Release(); err != nil {
		t.Error(err)
	}
}

func TestInUseErrorNamesTheHolder(t *testing.T) {
	t.Parallel()
	for want, holder := range map[string]folder.Holder{
		"another process;":                               {},
		"the process with pid 7;":                        {PID: 7},
		"the process with pid 7, which serves http://x;": {PID: 7, URL: "http://x"},
	} {
		err := &folder.InUseError{Dir: "d", Holder: holder}
		if !strings.Contains(err.Error(), "the data folder d is in use by "+want) {
			t.Errorf("%q lacks %q", err, want)
		}
	}
}

func TestUnusableFolder(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := folder.Hold(file); err == nil || !strings.Contains(err.Error(), "data folder") {
		t.Errorf("a file as folder: %v", err)
	}
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, folder.LockFile), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := folder.Hold(dir); err == nil || !strings.Contains(err.Error(), "cannot be written") {
		t.Errorf("a lock that cannot be opened: %v", err)
	}
}
