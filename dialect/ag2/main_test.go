package ag2_test

import (
	"testing"

	"go.uber.org/goleak"
)

// TestMain checks that no goroutine of a server outlives it.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
