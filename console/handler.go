// Package console serves the operator's page. The page itself is written in
// Svelte under src and built into dist, which is embedded.
package console

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"net/http"
	"path"
	"strconv"
	"strings"

	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/server/problem"
)

// Path is the path of the page.
const Path = "/console/"

// policy allows the page its own script, style and connections and nothing else.
// Svelte makes its templates through the one named policy; any other use of
// innerHTML throws.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"manifest-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; " +
	"require-trusted-types-for 'script'; trusted-types svelte-trusted-html"

// file is one file of the page, ready to be sent.
type file struct {
	plain, zipped []byte
	kind          string
	tag           string // the beginning of the SHA-256 of plain
}

// Handler serves Path and everything below it, and redirects a browser that
// opens the root to it. Nothing else is served.
func Handler() (http.Handler, error) {
	if !Built {
		return absent("this parley was built without the console (build tag noconsole)"), nil
	}
	files, err := load()
	if err != nil {
		return nil, err
	}
	return page(files), nil
}

// Off returns the handler that replaces the page where a setting switches it off.
func Off() http.Handler {
	return absent("the console is switched off (console.enabled)")
}

type absent string

func (why absent) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == Path || r.URL.Path+"/" == Path {
		problem.Write(w, fault.New(fault.NotFound, "%s", string(why)))
		return
	}
	nothing(w, r)
}

func nothing(w http.ResponseWriter, r *http.Request) {
	problem.Write(w, fault.New(fault.NotFound, "nothing is served at %s", r.URL.Path))
}

// load reads the embedded files. It adds the hash of each file to the names in
// index.html, so that browsers keep the files for ever.
func load() (map[string]*file, error) {
	files := map[string]*file{}
	err := fs.WalkDir(dist, "dist", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := fs.ReadFile(dist, name)
		if err != nil {
			return err
		}
		files[strings.TrimPrefix(name, "dist/")] = &file{plain: data, kind: kindOf(name)}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("console: read the embedded page: %w", err)
	}
	// The script first, because a module that is loaded under two addresses runs
	// twice: the parts that come later must import it under the address in
	// index.html.
	script := files["app.js"]
	script.seal()
	index := files["index.html"]
	for name, f := range files {
		if f == script || f == index {
			continue
		}
		if path.Ext(name) == ".js" {
			f.refer("app.js", script)
		}
		f.seal()
	}
	for name, f := range files {
		if f != index {
			index.refer(name, f)
		}
	}
	index.seal()
	for _, f := range files {
		if f.zipped, err = zip(f.plain); err != nil {
			return nil, fmt.Errorf("console: compress the page: %w", err)
		}
	}
	return files, nil
}

// seal computes the tag of a finished file.
func (f *file) seal() {
	sum := sha256.Sum256(f.plain)
	f.tag = hex.EncodeToString(sum[:8])
}

// refer adds another file's tag to its address.
func (f *file) refer(name string, to *file) {
	f.plain = bytes.ReplaceAll(f.plain, []byte(`"./`+name+`"`), []byte(`"./`+name+"?v="+to.tag+`"`))
}

// kindOf returns the content type of a file. The system's own table is not
// used, because it differs between machines.
func kindOf(name string) string {
	switch path.Ext(name) {
	case ".html":
		return "text/html; charset=utf-8"
	case ".js":
		return "text/javascript; charset=utf-8"
	case ".css":
		return "text/css; charset=utf-8"
	case ".svg":
		return "image/svg+xml"
	default:
		return "text/plain; charset=utf-8"
	}
}

func zip(data []byte) ([]byte, error) {
	var out bytes.Buffer
	w, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(data); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// page is the files by their names below Path.
type page map[string]*file

func (p page) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name, ours := strings.CutPrefix(r.URL.Path, Path)
	switch {
	case r.URL.Path+"/" == Path, r.URL.Path == "/" && strings.Contains(r.Header.Get("Accept"), "text/html"):
		// Relative, because a proxy may have put the hub below a path.
		w.Header().Set("Location", "."+Path)
		w.WriteHeader(http.StatusFound)
		return
	case !ours:
		nothing(w, r)
		return
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		w.Header().Set("Allow", "GET, HEAD")
		problem.WriteStatus(w, http.StatusMethodNotAllowed, fault.New(fault.Invalid, "%s is not possible at %s; it is GET or HEAD", r.Method, r.URL.Path))
		return
	case name == "":
		name = "index.html"
	}
	f, ok := p[name]
	if !ok {
		problem.Write(w, fault.New(fault.NotFound, "the console has no file %s; its screens are behind #, such as %s#/channels", name, Path))
		return
	}
	f.serve(w, r)
}

func (f *file) serve(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Permissions-Policy", "")
	h.Set("Content-Type", f.kind)
	h.Set("Vary", "Accept-Encoding")
	h.Set("ETag", `"`+f.tag+`"`)
	h.Set("Cache-Control", "no-cache")
	if r.URL.Query().Get("v") == f.tag {
		h.Set("Cache-Control", "public, max-age=31536000, immutable")
	}
	if strings.Contains(r.Header.Get("If-None-Match"), `"`+f.tag+`"`) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	body := f.plain
	if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		h.Set("Content-Encoding", "gzip")
		body = f.zipped
	}
	h.Set("Content-Length", strconv.Itoa(len(body)))
	if r.Method == http.MethodHead {
		return
	}
	_, _ = w.Write(body) // a reader that is gone needs no answer
}
