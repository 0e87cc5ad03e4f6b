package hub_test

import (
	"flag"
	"os"
	"strconv"
	"testing"

	"github.com/parley-hub/parley/internal/scale"
)

// The laws run on whole hubs, so a few histories take as long as many of a
// pure function; PARLEY_SCALE asks for more.
func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("rapid.checks", strconv.Itoa(scale.N(60))); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}
