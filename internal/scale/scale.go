// Package scale multiplies the size of heavy test suites by PARLEY_SCALE, so
// that one suite serves a quick run, continuous integration and a soak.
package scale

import (
	"os"
	"strconv"
)

// N returns base multiplied by PARLEY_SCALE, which counts as 1 when it is
// unset or not a positive number.
func N(base int) int {
	factor, err := strconv.Atoi(os.Getenv("PARLEY_SCALE"))
	if err != nil || factor < 1 {
		factor = 1
	}
	return base * factor
}
