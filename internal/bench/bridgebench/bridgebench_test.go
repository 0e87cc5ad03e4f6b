package bridgebench

import (
	"testing"

	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/internal/bench"
)

// A short run shows that the bench works.
func TestRunGivesItsFigures(t *testing.T) {
	t.Parallel()
	report, err := Run(t.Context(), Options{Envelopes: 64, Plan: bench.Plan{Seconds: 0.01}})
	if err != nil {
		t.Fatal(err)
	}
	if report.Bench != "bridge" || len(report.Figures) != 6 {
		t.Fatalf("got %+v", report)
	}
	for _, f := range report.Figures[4:] {
		if *f.Target != 1.25 || f.Better != bench.Lower || f.Ours <= 0 {
			t.Errorf("got %+v", f)
		}
	}
	for _, f := range report.Figures[:4] {
		if f.Ours <= 0 || f.Ratio == nil || *f.Target != 0.3 || f.Better != bench.Higher {
			t.Errorf("got %+v", f)
		}
	}
}

// Every envelope that is measured makes a message.
func TestWhatIsReadAreMessages(t *testing.T) {
	t.Parallel()
	for _, s := range subjects() {
		log, err := s.log(64)
		if err != nil {
			t.Fatal(err)
		}
		reader, said := channel.ReaderOf(s.adapter, s.meta), 0
		for _, data := range log {
			e, err := envelope.Unmarshal(data)
			if err != nil {
				t.Fatal(err)
			}
			for _, i := range reader.Read(nil, e) {
				switch i.Kind {
				case channel.ItemMessage, channel.ItemDelta:
					said++
				default:
					t.Errorf("%s: %s", s.meta.Manifest.Type, i.Kind)
				}
			}
		}
		if said < 60 {
			t.Errorf("%s: %d items", s.meta.Manifest.Type, said)
		}
	}
}
