package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	v1 "github.com/parley-hub/parley/client/v1"
)

// Ids in the order of a hub's list; the last one is in a home.
var listedIDs = []string{
	"abcdef00000000000000000000000000", "abcdef10000000000000000000000002", "abcdef2" + strings.Repeat("1", 25),
	strings.Repeat("9", 32) + ".bbbbbb" + strings.Repeat("3", 26),
}

func TestChannelsAreFoundByPrefix(t *testing.T) {
	t.Parallel()
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var rows []string
		for _, id := range listedIDs {
			own := id[len(id)-32:]
			if q := r.URL.Query(); q.Get("label") == "" && own > q.Get("after") {
				rows = append(rows, fmt.Sprintf(`{"channel_id":%q,"state":"active","manifest":{"type":"conversation"}}`, id))
			}
		}
		fmt.Fprintf(w, `{"channels":[%s],"next":"","names":{}}`, strings.Join(rows, ","))
	}))
	t.Cleanup(site.Close)
	hub, err := v1.New(site.URL, v1.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for ref, want := range map[string]string{
		"abcdef1":                           listedIDs[1],
		listedIDs[1][:31]:                   listedIDs[1],
		"bbbbbb":                            listedIDs[3],
		listedIDs[3][:39]:                   listedIDs[3],
		"0000000000000000000000000000dead":  "0000000000000000000000000000dead", // whole ids are not looked up
		strings.Repeat("8", 32) + ".bbbbbb": "",
		"abcde":                             "",
		"abcdeg":                            "",
		"":                                  "",
	} {
		if got, err := findChannel(t.Context(), hub, ref); got != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q %v, want %q", ref, got, err, want)
		}
	}
	_, err = findChannel(t.Context(), hub, "abcdef")
	for i, id := range listedIDs {
		if listed := err != nil && strings.Contains(err.Error(), id); listed != (i < 3) {
			t.Errorf("%s listed: %t: %v", id, listed, err)
		}
	}
}
