// Package fakeprovider is a local server that answers like a model provider,
// from a recorded script: streams, errors, rate limits and connections that
// break. Tests use it; nothing of the product imports it.
//
// A script is a txtar archive. Each file is one exchange, in order, named
//
//	METHOD PATH STATUS [cut]
//
// Its text is the answer: headers, an empty line, and the body. Lines of the
// header that begin with "> " are texts that the request's body must contain.
// {{key}} in a body is the key that the request carried. After the body of an
// exchange marked cut the connection breaks.
package fakeprovider

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/tools/txtar"
)

// Request is what the server was asked.
type Request struct {
	Method, Path, Key string
	Body              []byte
}

type exchange struct {
	method, path string
	status       int
	cut          bool
	header       [][2]string
	wants        []string
	body         string
}

// Server plays a script. It is an http.Handler.
type Server struct {
	mu       sync.Mutex
	script   []exchange
	requests []Request
	wrong    []string
}

// New reads a script.
func New(script []byte) (*Server, error) {
	s := &Server{}
	for _, file := range txtar.Parse(script).Files {
		words := strings.Fields(file.Name)
		if len(words) != 3 && (len(words) != 4 || words[3] != "cut") {
			return nil, fmt.Errorf("fakeprovider: %q is not METHOD PATH STATUS [cut]", file.Name)
		}
		status, err := strconv.Atoi(words[2])
		if err != nil {
			return nil, fmt.Errorf("fakeprovider: %q: %w", file.Name, err)
		}
		x := exchange{method: words[0], path: words[1], status: status, cut: len(words) == 4}
		head, body, _ := strings.Cut(string(file.Data), "\n\n")
		x.body = body
		for line := range strings.SplitSeq(head, "\n") {
			if want, ok := strings.CutPrefix(line, "> "); ok {
				x.wants = append(x.wants, want)
			} else if name, v, ok := strings.Cut(line, ":"); ok {
				x.header = append(x.header, [2]string{name, strings.TrimSpace(v)})
			}
		}
		s.script = append(s.script, x)
	}
	return s, nil
}

// ServeHTTP answers with the next exchange of the script.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 16<<20))
	if err != nil {
		return
	}
	key := r.Header.Get("X-Api-Key") + r.Header.Get("X-Goog-Api-Key") + strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	x, ok := s.next(Request{r.Method, r.URL.Path, key, body})
	if !ok {
		w.WriteHeader(http.StatusTeapot) // a request that fails this way is not retried
		return
	}
	for _, h := range x.header {
		w.Header().Add(h[0], h[1])
	}
	w.WriteHeader(x.status)
	flusher := http.NewResponseController(w)
	// Event by event, as a provider sends them.
	for part := range strings.SplitAfterSeq(strings.ReplaceAll(x.body, "{{key}}", key), "\n\n") {
		_, _ = io.WriteString(w, part)
		_ = flusher.Flush()
	}
	if x.cut {
		panic(http.ErrAbortHandler)
	}
}

// next takes an exchange, and notes what is wrong with the request.
func (s *Server) next(r Request) (exchange, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, r)
	if len(s.script) == 0 {
		s.wrong = append(s.wrong, fmt.Sprintf("%s %s: the script has ended", r.Method, r.Path))
		return exchange{}, false
	}
	x := s.script[0]
	s.script = s.script[1:]
	if r.Method != x.method || r.Path != x.path {
		s.wrong = append(s.wrong, fmt.Sprintf("%s %s, want %s %s", r.Method, r.Path, x.method, x.path))
	}
	for _, want := range x.wants {
		if !bytes.Contains(r.Body, []byte(want)) {
			s.wrong = append(s.wrong, fmt.Sprintf("no %s in %s", want, r.Body))
		}
	}
	return x, true
}

// Requests returns what the server was asked so far.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Request(nil), s.requests...)
}

// Problems returns the requests that the script did not expect, and the
// exchanges that were not asked for.
func (s *Server) Problems() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := append([]string(nil), s.wrong...)
	for _, x := range s.script {
		list = append(list, fmt.Sprintf("%s %s never came", x.method, x.path))
	}
	return list
}
