package main

import (
	"bytes"
	"testing"
)

func TestBar(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		done, total int64
		want        string
	}{
		{0, 10, "[                              ]   0% reading"},
		{5, 10, "[###############               ]  50% reading"},
		{10, 10, "[##############################] 100% reading"},
		{12, 10, "[##############################] 100% reading"},
		{-1, 10, "[                              ]   0% reading"},
		{7, 0, "reading 7"},
	} {
		if got := bar("reading", tc.done, tc.total); got != tc.want {
			t.Errorf("%d of %d: %q, want %q", tc.done, tc.total, got, tc.want)
		}
	}
}

func TestNoBarWithoutATerminal(t *testing.T) {
	t.Parallel()
	var errs bytes.Buffer
	tell, end := (&app{streams: streams{err: &errs}}).progress()
	tell("reading", 1, 2)
	end()
	if errs.Len() > 0 {
		t.Errorf("wrote %q", errs.String())
	}
}
