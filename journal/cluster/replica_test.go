package cluster_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	api "github.com/nats-io/nats.go/jetstream"

	"github.com/parley-hub/parley/journal"
	"github.com/parley-hub/parley/journal/cluster/jetstream"
	"github.com/parley-hub/parley/journal/cluster/natsservers"
)

var damages = map[string]func(b []byte) []byte{
	"flipped":   func(b []byte) []byte { b[len(b)/2] ^= 4; return b },
	"truncated": func(b []byte) []byte { return b[:len(b)/2] },
}

// TestADamagedReplica: the files of each server's replica in turn are damaged while
// the server is down, and it is made the stream's leader. An empty node then reads
// everything from the other servers, or reports a typed error; it never has wrong data
// or a gap.
func TestADamagedReplica(t *testing.T) {
	t.Parallel()
	s, err := natsservers.Start(t.Context(), 3, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Stop)
	for i := range 3 {
		type victim struct {
			stream  string
			connect func() *jetstream.Log
			leader  *node
			want    []string
		}
		victims := map[string]*victim{}
		for how := range damages {
			name := fmt.Sprint(how, i)
			v := &victim{stream: "PARLEY_" + name + "_0", connect: connectorOf(t, s, name)}
			v.leader = openNode(t, "a", v.connect()).take()
			for n := range 60 {
				v.want = append(v.want, fmt.Sprint(n))
			}
			v.leader.write(v.want...)
			victims[how] = v
		}
		s.End(i)
		for how, v := range victims {
			damageFiles(t, s.Dir(i), v.stream, damages[how])
		}
		if err := s.Again(i); err != nil {
			t.Fatal(err)
		}
		for how, v := range victims {
			lead(t, s.URL(), v.stream, s.Name(i))
			read := openNode(t, "b", v.connect()).readsDamaged(v.leader, v.want)
			t.Logf("replica %d, %s: %d of %d records were read", i, how, read, len(v.want))
		}
	}
}

// readsDamaged follows a log of which one replica is damaged.
func (n *node) readsDamaged(leader *node, want []string) (read int) {
	t := n.t
	t.Helper()
	refused := func() bool { return errors.Is(n.Trouble(0), journal.ErrDamaged) }
	n.until("the whole log, or an error", func() bool { return n.Reached(0) >= leader.Reached(0) || refused() })
	got := n.texts()
	for i := range got {
		if got[i] != want[i] {
			t.Fatalf("record %d is %q", i, got[i])
		}
	}
	// Writing continues, and a node that follows has all of it.
	leader.write("after")
	n.until("what came after, or an error", func() bool { return n.Reached(0) >= leader.Reached(0) || refused() })
	if !refused() {
		n.has(append(want, "after")...)
	}
	leader.has(append(want, "after")...)
	return len(got)
}

// damageFiles damages the blocks of a stream.
func damageFiles(t *testing.T, dir, stream string, damage func([]byte) []byte) {
	t.Helper()
	blocks := 0
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".blk" || filepath.Base(filepath.Dir(filepath.Dir(path))) != stream {
			return err
		}
		b, err := os.ReadFile(path)
		if err != nil || len(b) < 100 {
			return err
		}
		blocks++
		return os.WriteFile(path, damage(b), 0o600)
	})
	if err != nil || blocks == 0 {
		t.Fatalf("%d blocks were damaged, %v", blocks, err)
	}
}

// lead makes a server lead a stream, as soon as it can.
func lead(t *testing.T, url, stream, server string) {
	t.Helper()
	nc, err := nats.Connect(url)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	js, err := api.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(patience); time.Now().Before(end); {
		s, err := js.Stream(t.Context(), stream)
		if err == nil && s.CachedInfo().Cluster != nil && s.CachedInfo().Cluster.Leader == server {
			return
		}
		if err == nil {
			_, _ = nc.Request("$JS.API.STREAM.LEADER.STEPDOWN."+stream, fmt.Appendf(nil, `{"placement":{"preferred":%q}}`, server), time.Second)
		}
	}
	t.Fatalf("server %s does not lead %s", server, stream)
}
