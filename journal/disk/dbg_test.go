package disk

import ("testing";"os";"fmt";"github.com/cockroachdb/pebble/v2/vfs")

func TestDbg(t *testing.T) {
	d := os.Getenv("DBG")
	if d == "" { t.Skip() }
	ends, err := scanWALs(vfs.Default, d)
	for _, e := range ends { fmt.Printf("%s num %d stop %d size %d err %v beyond %d proven %v first %d last %d\n", e.path, e.number, e.stop, e.size, e.err, e.beyond, e.proven, e.first, e.last) }
	fmt.Println(err)
}
