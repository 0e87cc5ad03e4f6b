package hub_test

import (
	"flag"
	"os"
	"strconv"
	"testing"

	"github.com/parley-hub/parley/internal/scale"
)

// shards is how many shards a test's store in memory has.
var shards = 1

// TestMain runs every test twice: on stores of one shard, as the embedded engines
// have, and of eight. The laws run on whole hubs, so a few histories take as long
// as many of a pure function; PARLEY_SCALE asks for more.
func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("rapid.checks", strconv.Itoa(scale.N(60))); err != nil {
		panic(err)
	}
	code := m.Run()
	if flag.Lookup("test.bench").Value.String() == "" && flag.Lookup("test.fuzz").Value.String() == "" {
		shards = 8
		code = max(code, m.Run())
	}
	os.Exit(code)
}
