// Package streams has what benches of event streams share: a server on a loopback
// port, readers that count events, a loop that flushes each event, and the time
// of an operation. It knows no dialect.
package streams

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"
)

// Server is an HTTP server on a loopback port.
type Server struct {
	URL    string
	server *http.Server
	done   chan struct{}
}

// Listen serves a handler until it is closed.
func Listen(ctx context.Context, handler http.Handler) (*Server, error) {
	at, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	l := &Server{URL: "http://" + at.Addr().String(), done: make(chan struct{})}
	l.server = &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	go func() {
		defer close(l.done)
		_ = l.server.Serve(at) // it ends when it is closed
	}()
	return l, nil
}

// Close ends the server and its connections.
func (l *Server) Close() {
	_ = l.server.Close()
	<-l.done
}

// Open begins to follow a path; the caller closes it.
func Open(ctx context.Context, url string) (io.ReadCloser, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Accept", "text/event-stream")
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	if answer.StatusCode != http.StatusOK {
		_ = answer.Body.Close()
		return nil, fmt.Errorf("%s: %s", url, answer.Status)
	}
	return answer.Body, nil
}
