package gcpace

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

func TestMappingsOf(t *testing.T) {
	t.Parallel()
	const maps = `00400000-02800000 r-xp 00000000 fe:00 7                                  /usr/bin/parley
Rss:               23644 kB
Anonymous:             0 kB
02800000-02900000 r--p 02400000 fe:00 7                                  /usr/bin/parley
Anonymous:             8 kB
02900000-05500000 r--p 02500000 fe:00 7                                  /usr/bin/parley
Anonymous:             0 kB
05500000-05600000 rw-p 05100000 fe:00 7                                  /usr/bin/parley
Anonymous:             0 kB
7f0000000000-7f0000001000 r-xp 00000000 fe:00 8                          /usr/lib/libc.so.6
Anonymous:             0 kB
`
	if got, want := fmt.Sprintf("%x", mappingsOf([]byte(maps), "/usr/bin/parley")), "[{400000 2800000} {2900000 5500000}]"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// The program runs on, whatever it needs of itself, and has less in memory.
func TestForgetProgram(t *testing.T) {
	resident := func() (pages int) {
		raw, err := os.ReadFile("/proc/self/statm")
		if err != nil {
			t.Fatal(err)
		}
		var size, all int
		if _, err := fmt.Sscan(string(raw), &size, &all, &pages); err != nil {
			t.Fatal(err)
		}
		return pages
	}
	before := resident()
	ForgetProgram()
	if after := resident(); after >= before {
		t.Errorf("%d pages of files before, %d after", before, after)
	}
	if strings.Repeat("ab", 3) != "ababab" || fmt.Sprint(before) == "" {
		t.Error("the program does not run on")
	}
}
