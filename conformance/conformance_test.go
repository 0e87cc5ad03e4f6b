package conformance_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-hub/parley/conformance"
)

func TestStatementsAreComplete(t *testing.T) {
	t.Parallel()
	want := map[string]int{
		"ag2-hub": 131, "ag2-channels": 132, "agh-network": 134, "hpd-events": 143, "agent-message": 92,
		"seed-000": 85, "seed-001": 141, "seed-002": 112, "seed-003": 145, "seed-004": 53,
	}
	got := map[string]int{}
	all := conformance.All()
	for _, file := range all.Files() {
		for i, id := range all.In(file) {
			if id.N != i+1 {
				t.Errorf("%s is at place %d: numbers have no holes", id, i+1)
			}
			if all[id] == "" {
				t.Errorf("%s has no text", id)
			}
			got[file]++
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("statements by file (-want +got):\n%s", diff)
	}
}

func TestAmendmentsNameStatements(t *testing.T) {
	t.Parallel()
	for name := range conformance.Amendments() {
		id, err := conformance.ParseID(name)
		if err != nil {
			t.Error(err)
		}
		if _, known := conformance.All()[id]; !known {
			t.Errorf("amendment of %s, which does not exist", id)
		}
	}
}

func TestParseID(t *testing.T) {
	t.Parallel()
	got, err := conformance.ParseID("seed-002#64")
	if err != nil || got != (conformance.ID{File: "seed-002", N: 64}) || got.String() != "seed-002#64" {
		t.Errorf("got %v, %v", got, err)
	}
	for _, bad := range []string{"", "seed-002", "seed-002#", "seed-002#x", "#"} {
		if _, err := conformance.ParseID(bad); err == nil {
			t.Errorf("%q was taken as a statement's name", bad)
		}
	}
}
