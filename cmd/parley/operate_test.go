package main

import (
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"
)

// The page for operators names every series that a hub shows, and no other.
func TestEverySeriesIsDescribed(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/operate.md")
	if err != nil {
		t.Fatal(err)
	}
	at := runningHub(t, nil)
	_, metrics := ask(t, http.MethodGet, at.URL+"/metrics", "")
	// One is shown only once something was refused, two only of a store on disk.
	shown := map[string]bool{"parley_posts_refused_total": true, "parley_data_bytes": true, "parley_disk_free_bytes": true}
	for _, found := range regexp.MustCompile(`(?m)^# HELP (parley_\w+)`).FindAllStringSubmatch(metrics, -1) {
		shown[found[1]] = true
		if !strings.Contains(string(page), "`"+found[1]+"`") {
			t.Errorf("%s has no row", found[1])
		}
	}
	for _, found := range regexp.MustCompile("`(parley_\\w+)").FindAllStringSubmatch(string(page), -1) {
		if !shown[found[1]] {
			t.Errorf("%s is described and does not exist", found[1])
		}
	}
}
