package disk_test

import (
	"testing"

	"github.com/parley-hub/parley/journal/disk"
)

func TestSpace(t *testing.T) {
	t.Parallel()
	e, err := disk.Open(t.TempDir(), disk.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if used, free, err := e.Space(); err != nil || used == 0 || free == 0 {
		t.Errorf("used %d, free %d: %v", used, free, err)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	if used, free, err := e.Space(); err != nil || used != 0 || free == 0 {
		t.Errorf("closed: used %d, free %d: %v", used, free, err)
	}
}
