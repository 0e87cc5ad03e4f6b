//go:build !noconsole

package console_test

import (
	"bytes"
	"compress/gzip"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/parley-hub/parley/console"
)

func ask(t *testing.T, method, target string, header ...string) *http.Response {
	t.Helper()
	h, err := console.Handler()
	if err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequest(method, target, nil)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Result()
}

func body(t *testing.T, res *http.Response) string {
	t.Helper()
	data, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestThePageIsLockedIn(t *testing.T) {
	t.Parallel()
	res := ask(t, "GET", "/console/")
	if res.StatusCode != http.StatusOK {
		t.Fatalf("status %d", res.StatusCode)
	}
	for name, want := range map[string]string{
		"Content-Security-Policy":    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types svelte-trusted-html",
		"X-Frame-Options":            "DENY",
		"Referrer-Policy":            "no-referrer",
		"Cross-Origin-Opener-Policy": "same-origin",
		"Content-Type":               "text/html; charset=utf-8",
		"Cache-Control":              "no-cache",
	} {
		if got := res.Header.Get(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	if got, ok := res.Header["Permissions-Policy"]; !ok || got[0] != "" {
		t.Errorf("Permissions-Policy is %q, want it there and empty", got)
	}
}

func TestBrowsersAreSentToThePage(t *testing.T) {
	t.Parallel()
	for _, target := range []string{"/", "/console"} {
		res := ask(t, "GET", target, "Accept", "text/html,*/*")
		if res.StatusCode != http.StatusFound || res.Header.Get("Location") != "./console/" {
			t.Errorf("%s: %d to %q, want 302 to ./console/", target, res.StatusCode, res.Header.Get("Location"))
		}
	}
	if res := ask(t, "GET", "/", "Accept", "*/*"); res.StatusCode != http.StatusNotFound {
		t.Errorf("a program that opens the root gets %d, want 404", res.StatusCode)
	}
}

var named = regexp.MustCompile(`"\./([a-z.]+)\?v=([0-9a-f]+)"`)

func TestAssetsAreKeptForEver(t *testing.T) {
	t.Parallel()
	index := body(t, ask(t, "GET", "/console/"))
	found := named.FindAllStringSubmatch(index, -1)
	if len(found) != 3 {
		t.Fatalf("index.html names %d versioned files, want app.js, app.css and icon.svg:\n%s", len(found), index)
	}
	for _, f := range found {
		res := ask(t, "GET", "/console/"+f[1]+"?v="+f[2])
		if got := res.Header.Get("Cache-Control"); !strings.Contains(got, "immutable") {
			t.Errorf("%s: Cache-Control is %q", f[1], got)
		}
		if again := ask(t, "GET", "/console/"+f[1], "If-None-Match", res.Header.Get("ETag")); again.StatusCode != http.StatusNotModified {
			t.Errorf("%s asked again: %d, want 304", f[1], again.StatusCode)
		}
		if other := ask(t, "GET", "/console/"+f[1]+"?v=0"); other.Header.Get("Cache-Control") != "no-cache" {
			t.Errorf("%s under another version is kept", f[1])
		}
		packed := ask(t, "GET", "/console/"+f[1], "Accept-Encoding", "gzip")
		r, err := gzip.NewReader(packed.Body)
		if err != nil {
			t.Fatal(err)
		}
		unpacked, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		if string(unpacked) != body(t, res) {
			t.Errorf("%s differs when it is compressed", f[1])
		}
	}
}

// A module under two addresses would run twice.
func TestLaterPartsImportTheSameScript(t *testing.T) {
	t.Parallel()
	address := regexp.MustCompile(`"\./app\.js[^"]*"`)
	want := address.FindString(body(t, ask(t, "GET", "/console/")))
	later := body(t, ask(t, "GET", "/console/GraphView.js"))
	found := address.FindAllString(later, -1)
	if len(found) == 0 {
		t.Fatal("GraphView.js does not import the script")
	}
	for _, got := range found {
		if got != want {
			t.Errorf("GraphView.js imports %s, the page %s", got, want)
		}
	}
}

func TestWhatIsNotThere(t *testing.T) {
	t.Parallel()
	for target, want := range map[string]int{"/console/missing.js": 404, "/console/../handler.go": 404, "/elsewhere": 404} {
		if res := ask(t, "GET", target); res.StatusCode != want {
			t.Errorf("GET %s: %d, want %d", target, res.StatusCode, want)
		}
	}
	if res := ask(t, "POST", "/console/"); res.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("POST: %d, want 405", res.StatusCode)
	}
}

// Agents' words never become HTML: no way to do so is in the sources.
func TestNoHTMLSinks(t *testing.T) {
	t.Parallel()
	sink := regexp.MustCompile(`\{@html|innerHTML|outerHTML|insertAdjacentHTML|srcdoc|document\.write`)
	files := 0
	err := filepath.WalkDir("src", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		files++
		data, err := os.ReadFile(name)
		if found := sink.Find(data); found != nil {
			t.Errorf("%s has %s", name, found)
		}
		return err
	})
	if err != nil || files < 40 {
		t.Fatalf("%d files read, %v", files, err)
	}
}

func TestThePageIsSmall(t *testing.T) {
	t.Parallel()
	size := func(name string) int {
		data, err := os.ReadFile(filepath.Join("dist", name))
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		w := gzip.NewWriter(&out)
		if _, err := w.Write(data); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		return out.Len()
	}
	if first := size("index.html") + size("app.js") + size("app.css"); first > 90_000 {
		t.Errorf("the first screen is %d bytes, at most 90,000", first)
	}
	entries, err := os.ReadDir("dist")
	if err != nil {
		t.Fatal(err)
	}
	all := 0
	for _, entry := range entries {
		all += size(entry.Name())
	}
	if all > 160_000 {
		t.Errorf("dist is %d bytes, at most 160,000", all)
	}
}
