package messagebench

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/parley-hub/parley/internal/bench"
	"github.com/parley-hub/parley/message/sample"
)

// A short run shows that the bench works; cat replaces the command.
func TestRunGivesItsFigures(t *testing.T) {
	t.Parallel()
	stand := filepath.Join(t.TempDir(), "parley")
	if err := os.WriteFile(stand, []byte("#!/bin/sh\n[ \"$*\" = 'message normalize -' ] && exec cat\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	report, err := Run(t.Context(), Options{Binary: stand, Bytes: 1 << 20, Plan: bench.Plan{Seconds: 0.01}})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"normalize: decode, normalize, encode", "normalize a file: peak memory", "normalize a file: time for a MiB"}
	if report.Bench != "message" || len(report.Figures) != len(want) || report.Params["file_bytes"] != 1<<20 {
		t.Fatalf("got %+v", report)
	}
	for i, f := range report.Figures {
		if f.Name != want[i] || f.Ours <= 0 || f.Better != bench.Lower {
			t.Errorf("got %+v", f)
		}
	}
	if report.Figures[0].Ratio == nil || *report.Figures[0].Target != 2.5 || *report.Figures[1].Target != 64 || report.Figures[2].Target != nil {
		t.Errorf("got %+v", report.Figures)
	}
}

func TestEndlessIsWholeLines(t *testing.T) {
	t.Parallel()
	all, err := io.ReadAll(&endless{text: sample.Conversation(), left: 10_000})
	if err != nil {
		t.Fatal(err)
	}
	if want := sample.Lines(10_000); !bytes.Equal(all, want) {
		t.Errorf("got %d bytes, want %d", len(all), len(want))
	}
}
