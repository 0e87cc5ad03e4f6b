package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	v1 "github.com/parley-hub/parley/client/v1"
)

// A task is found by the beginning of its id, also on a later page of the list.
func TestTasksAreFoundByPrefix(t *testing.T) {
	t.Parallel()
	task := func(id string) string {
		return fmt.Sprintf(`{"task_id":%q,"state":"running","spec":{"title":"Load"}}`, id)
	}
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id, one := strings.CutPrefix(r.URL.Path, "/v1/tasks/")
		switch {
		case one && (id == "load-harbour" || id == "load-harbour-2"):
			fmt.Fprint(w, task(id))
		case one:
			w.WriteHeader(http.StatusNotFound)
			fmt.Fprintf(w, `{"code":"not_found","reason":"no_task","detail":"task not found: '%s'"}`, id)
		case r.URL.Query().Get("after") == "":
			fmt.Fprintf(w, `{"tasks":[%s],"next":"x"}`, task("load-harbour-2"))
		default:
			fmt.Fprintf(w, `{"tasks":[%s,%s],"next":""}`, task("load-harbour"), task("scan-the-shore"))
		}
	}))
	t.Cleanup(site.Close)
	hub, err := v1.New(site.URL, v1.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for ref, want := range map[string]string{
		"load-harbour":   "load-harbour", // a whole id, although others begin with it
		"load-harbour-":  "load-harbour-2",
		"scan-the":       "scan-the-shore",
		"scan-":          "", // too short
		"load-h":         "",
		"nothing-at-all": "",
	} {
		if got, err := findTask(t.Context(), hub, ref); got != want && want != "" || (err == nil) != (want != "") {
			t.Errorf("%q: %q %v, want %q", ref, got, err, want)
		}
	}
	if _, err := findTask(t.Context(), hub, "load-h"); !strings.Contains(err.Error(), "several tasks begin with \"load-h\"; say which by more of its id:\n  load-harbour-2  running  Load\n  load-harbour  running  Load") {
		t.Error(err)
	}
}
