package access_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-hub/parley/server/access"
)

// Ten failures a minute of one address are reported, and the next report says
// how many were not.
func TestFailuresAreToldAndCounted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var told []access.Failure
		f := access.NewFailures(func(one access.Failure) { told = append(told, one) })
		for i := range 25 {
			f.Note(fmt.Sprintf("203.0.113.9:%d", 1000+i), "http", "")
		}
		f.Note("[2001:db8::1]:5", "ag2", "quill")
		f.Note("[2001:db8::2]:6", "ag2", "quill")
		if len(told) != 12 || told[10].Address != "2001:db8::/64" || told[10] != told[11] {
			t.Fatalf("told %v", told)
		}
		<-time.After(time.Minute)
		f.Note("203.0.113.9:1", "http", "")
		f.Note("203.0.113.9:1", "http", "")
		want := []access.Failure{{Address: "203.0.113.9", Door: "http", Untold: 15}, {Address: "203.0.113.9", Door: "http"}}
		if diff := cmp.Diff(want, told[12:]); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
		told = nil
		for i := range 20_000 { // many addresses cost no more memory, and few records
			f.Note(fmt.Sprintf("10.%d.%d.%d:1", i>>16, i>>8&255, i&255), "http", "")
		}
		if len(told) > 4200 {
			t.Errorf("%d records", len(told))
		}
	})
}

// The guard notes tokens that belong to no key.
func TestRefusedTokensAreNoted(t *testing.T) {
	t.Parallel()
	var noted []access.Failure
	keys := access.NewKeys()
	keys.OnFailure(func(f access.Failure) { noted = append(noted, f) })
	g := &access.Guard{Keys: keys, Listen: "127.0.0.1:7440"}
	ask(g, request("203.0.113.9:5", "localhost:7440", "Authorization", "Bearer x"))
	ask(g, request("203.0.113.9:5", "localhost:7440"))
	if diff := cmp.Diff([]access.Failure{{Address: "203.0.113.9", Door: "http"}}, noted); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
