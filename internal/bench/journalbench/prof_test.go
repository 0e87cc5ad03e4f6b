package journalbench

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/parley-hub/parley/internal/bench"
)

func TestAll(t *testing.T) {
	if os.Getenv("PROF") == "" {
		t.Skip()
	}
	var size, secs float64
	fmt.Sscan(os.Getenv("PROF"), &size, &secs)
	rep, err := Run(context.Background(), Options{Size: size, Plan: bench.Plan{Seconds: secs}})
	rep.Table(os.Stdout)
	fmt.Println(err)
}
