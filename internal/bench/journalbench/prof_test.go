package journalbench

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/parley-hub/parley/journal/disk"
)

func TestProf(t *testing.T) {
	if os.Getenv("PROF") == "" {
		t.Skip()
	}
	var n int
	fmt.Sscan(os.Getenv("PROF"), &n)
	e, err := disk.Open(filepath.Join(t.TempDir(), "data"), disk.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	s, err := load(context.Background(), 10*time.Second, n, appender(e, "log", payloads(), n))
	fmt.Println(s, err, e.Stats())
}
