package disk_test

import (
	"bytes"
	"path"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-hub/parley/internal/scale"
	"github.com/parley-hub/parley/journal/disk"
)

// TestACrashWhileALogIsCut crashes an open that cuts a damaged log, at operations
// that change the file system; from a scale of 4 on at every one. The next open still
// begins a new epoch and reports the cut, also after another crash.
func TestACrashWhileALogIsCut(t *testing.T) {
	t.Parallel()
	const marked, all, pad = 2, 12, 8 << 10
	img := crashedStore(t, marked, all, pad)
	file := ""
	for _, name := range img.paths() {
		if strings.HasSuffix(name, ".log") && len(img[name]) > 40<<10 {
			file = name
		}
	}
	bad := bytes.Clone(img[file])
	bad[20<<10] ^= 4
	img = img.with(file, bad)
	fs := img.mount(t)
	e := mustOpen(t, fs)
	want := e.Recovery()
	kept := readDiary(t, e)
	mustClose(t, e)
	if !want.Lost || len(want.Cuts) != 1 || want.Cuts[0].File != path.Base(file) {
		t.Fatalf("opening a damaged log finds %+v", want)
	}
	for at := 1; ; at += max(1, 4/scale.N(1)) {
		mem := img.mount(t)
		fs := &countdownFS{FS: mem, left: at, mem: mem}
		e := mustOpen(t, fs)
		crashed := fs.picture()
		mustClose(t, e)
		if crashed == nil {
			if at < 10 {
				t.Fatalf("opening took only %d operations", at)
			}
			return
		}
		again, err := disk.Open("/data", testOptions(crashed))
		if err != nil {
			t.Fatalf("after a crash at operation %d: %v", at, err)
		}
		place, err := again.Place(ctx, 0)
		if err != nil {
			t.Fatal(err)
		}
		if place.Epoch < 2 {
			t.Errorf("after a crash at operation %d the epoch is %d", at, place.Epoch)
		}
		if again.Recovery().Lost {
			if diff := cmp.Diff(want, again.Recovery()); diff != "" {
				t.Errorf("after a crash at operation %d the report differs (-want +got):\n%s", at, diff)
			}
		}
		if diff := cmp.Diff(kept, readDiary(t, again)); diff != "" {
			t.Errorf("after a crash at operation %d (-want +got):\n%s", at, diff)
		}
		mustClose(t, again)
	}
}
