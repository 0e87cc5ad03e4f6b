package journal_test

import (
	"testing"
	"time"

	"github.com/parley-hub/parley/journal"
)

func TestHistogram(t *testing.T) {
	t.Parallel()
	var h journal.Histogram
	for range 98 {
		h.Add(100 * time.Microsecond)
	}
	before := h
	h.Add(5 * time.Millisecond)
	h.Add(-time.Second) // a clock that was set back
	h.Add(time.Hour)
	if h.Total() != 101 {
		t.Errorf("counted %d", h.Total())
	}
	// A bound is at most twice what was measured.
	if p50 := h.Quantile(0.5); p50 < 100*time.Microsecond || p50 > 200*time.Microsecond {
		t.Errorf("p50 is %s", p50)
	}
	since := h.Since(before)
	if since.Total() != 3 {
		t.Errorf("since then %d", since.Total())
	}
	if p50 := since.Quantile(0.5); p50 < 5*time.Millisecond || p50 > 10*time.Millisecond {
		t.Errorf("p50 of the later ones is %s", p50)
	}
	if none := (&journal.Histogram{}).Quantile(0.5); none != 0 {
		t.Errorf("p50 of none is %s", none)
	}
}
