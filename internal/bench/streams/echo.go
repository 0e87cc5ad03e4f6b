package streams

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/parley-hub/parley/internal/bench"
)

// Echo is the floor of a latency: a server that sends back what it is sent, and a file
// on the disk that the hub writes to.
type Echo struct {
	server *Server
	file   *os.File
}

// NewEcho starts a server, and makes a file in a folder.
func NewEcho(ctx context.Context, dir string) (*Echo, error) {
	file, err := os.Create(filepath.Join(dir, "floor"))
	if err != nil {
		return nil, err
	}
	server, err := Listen(ctx, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		raw, err := io.ReadAll(r.Body)
		if err == nil {
			_, err = w.Write(raw)
		}
		if err != nil {
			panic(http.ErrAbortHandler)
		}
	}))
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return &Echo{server, file}, nil
}

// Close ends the server and closes the file.
func (e *Echo) Close() error {
	e.server.Close()
	return e.file.Close()
}

// Floor returns the time that an echo of a body takes and, if it is durable, a
// sync of it.
func (e *Echo) Floor(body []byte, durable bool) bench.Side {
	return func(ctx context.Context, d time.Duration) (bench.Sample, error) {
		return Timed(d, func() (time.Duration, error) {
			start := time.Now()
			if err := Post(ctx, e.server.URL, body, http.StatusOK); err != nil {
				return 0, err
			}
			if durable {
				if _, err := e.file.Write(body); err != nil {
					return 0, err
				}
				if err := e.file.Sync(); err != nil {
					return 0, err
				}
			}
			return time.Since(start), nil
		})
	}
}
