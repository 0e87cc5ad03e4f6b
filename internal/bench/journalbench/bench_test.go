package journalbench_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/parley-hub/parley/internal/bench"
	"github.com/parley-hub/parley/internal/bench/journalbench"
)

// TestRun runs the whole bench, small and short: it shows that it works, not
// how fast anything is.
func TestRun(t *testing.T) {
	t.Parallel()
	report, err := journalbench.Run(t.Context(), journalbench.Options{
		Dir: t.TempDir(), Size: 0.001, Plan: bench.Plan{Seconds: 0.01},
	})
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := report.Table(&out); err != nil {
		t.Fatal(err)
	}
	t.Logf("\n%s", out.String())
	if len(report.Figures) != 14 {
		t.Errorf("%d figures", len(report.Figures))
	}
	out.Reset()
	if err := report.JSON(&out); err != nil {
		t.Fatal(err)
	}
	var back map[string]any
	if err := json.Unmarshal(out.Bytes(), &back); err != nil || back["bench"] != "journal" {
		t.Errorf("%v: %s", err, out.String())
	}
	for _, f := range report.Figures {
		if (f.Floor == nil) != (f.Ratio == nil) || f.Ours < 0 {
			t.Errorf("figure %+v", f)
		}
	}
}
