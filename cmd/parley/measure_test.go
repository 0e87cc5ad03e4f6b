package main

import (
	"bufio"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/parley-hub/parley/dialect/dialecttest"
)

// What /v1/stats tells is what /metrics tells, and every series has its figure.
func TestStatsAreTheFiguresOfMetrics(t *testing.T) {
	t.Parallel()
	s := &site{t: t}
	startSite(s, dialecttest.Options{})
	var sum struct{ At string }
	if err := s.ask(http.MethodGet, "/v1/summary", "", &sum); err != nil { // from now on overdue turns are known
		t.Fatal(err)
	}
	var names []string
	for _, m := range measured {
		names = append(names, m.Name)
	}
	if len(names) != 24 {
		t.Errorf("there are %d series", len(names))
	}
	var answer struct {
		Step   float64
		At     []string
		Series map[string][]*float64
	}
	watch, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.at.URL+"/v1/watch?topic=stats", nil)
	if err != nil {
		t.Fatal(err)
	}
	watch.Header.Set("Authorization", "Bearer "+s.token)
	stream, err := http.DefaultClient.Do(watch)
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Body.Close()
	samples := bufio.NewScanner(stream.Body)
	samples.Buffer(nil, 1<<20)
	for range 2 { // the second says how counters grew
		readUntil(t, samples, "event: sample")
	}
	if err := s.ask(http.MethodGet, "/v1/stats?series="+url.QueryEscape(strings.Join(names, ",")), "", &answer); err != nil {
		t.Fatal(err)
	}
	if answer.Step != 1 || len(answer.At) == 0 || len(answer.Series) != len(names) {
		t.Fatalf("stats: %+v", answer)
	}
	for name, values := range answer.Series {
		last := values[len(values)-1]
		if strings.HasPrefix(name, "sync_") || name == "disk_free" || name == "data_bytes" {
			continue // not known while nothing is written, and of a store in memory
		}
		if last == nil || slices.Contains([]string{"connections", "heap", "goroutines"}, name) && *last <= 0 {
			t.Errorf("%s is not known", name)
		}
	}
}

// readUntil reads a stream up to a line.
func readUntil(t *testing.T, scan *bufio.Scanner, line string) {
	t.Helper()
	for scan.Scan() {
		if scan.Text() == line {
			return
		}
	}
	t.Fatalf("%q never came: %v", line, scan.Err())
}
