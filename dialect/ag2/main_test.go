package ag2_test

import (
	"testing"

	"go.uber.org/goleak"
)

// Nothing that a server started outlives it.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
