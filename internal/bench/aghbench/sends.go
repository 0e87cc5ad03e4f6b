package aghbench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"time"

	"github.com/parley-hub/parley/internal/bench"
	"github.com/parley-hub/parley/internal/bench/journalbench"
)

// Targets of the figures with many senders.
const (
	minNATS    = 0.15
	minHTTP    = 0.4
	minOpening = 0.2
)

// text is what every message says; the envelope has about the 600 bytes of the
// floor's records.
var text = func() string {
	b := ""
	for len(b) < 260 {
		b += "the quick brown fox "
	}
	return b
}()

// record is what the floor stores.
var record = make([]byte, journalbench.RecordLen)

// sends measures how many messages of many senders become durable.
func (r *run) sends() (figures []bench.Figure, err error) {
	s, err := open(r.ctx, filepath.Join(r.Dir, "sends"), true)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	echo, stop, err := echoServer(r.ctx)
	if err != nil {
		return nil, err
	}
	defer stop()
	remote, err := r.remotes(s)
	if err != nil {
		return nil, err
	}
	defer remote.close()
	hosted, err := r.posters(s)
	if err != nil {
		return nil, err
	}
	appends := func(ctx context.Context, d time.Duration) (bench.Sample, error) {
		return journalbench.Load(ctx, d, r.Senders, func(context.Context, int, int) error { return r.file.Append(record) })
	}
	echoed := func(ctx context.Context, d time.Duration) (bench.Sample, error) {
		return journalbench.Load(ctx, d, r.Senders, func(ctx context.Context, writer, i int) error {
			if err := hosted[writer].post(ctx, echo, hosted[writer].body(i, false)); err != nil {
				return err
			}
			return r.file.Append(record)
		})
	}
	sending := func(open bool) bench.Side {
		return func(ctx context.Context, d time.Duration) (bench.Sample, error) {
			return journalbench.Load(ctx, d, r.Senders, func(ctx context.Context, writer, i int) error {
				return hosted[writer].post(ctx, s.url+base+"/send", hosted[writer].body(i, open))
			})
		}
	}
	named := func(what string) string { return fmt.Sprintf("%s, %d senders", what, r.Senders) }
	return r.contests(
		bench.Contest{
			Name: named("durable messages over NATS, against a group-committed file"), Unit: "1/s", Better: bench.Higher, Target: new(minNATS),
			Ours: remote.send, Floor: appends,
		},
		bench.Contest{
			Name: named("durable sends over HTTP, against an HTTP echo and then the file"), Unit: "1/s", Better: bench.Higher, Target: new(minHTTP),
			Ours: sending(false), Floor: echoed,
		},
		bench.Contest{
			Name: named("threads opened by their first message, against sends to open ones"), Unit: "1/s", Better: bench.Higher, Target: new(minOpening),
			Ours: sending(true), Floor: sending(false),
		},
	)
}

// poster sends for one hosted peer to another, over one connection.
type poster struct {
	session, thread, to string
	client              *http.Client
	opened              int
}

func (r *run) posters(s *site) ([]*poster, error) {
	list := make([]*poster, r.Senders)
	for i := range list {
		session, err := s.join(r.ctx, fmt.Sprintf("hosted.h%02d", i))
		if err != nil {
			return nil, err
		}
		list[i] = &poster{
			session: session, thread: fmt.Sprintf("thread_http_%02d", i), to: fmt.Sprintf("hosted.h%02d", (i+1)%r.Senders),
			client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 1}},
		}
	}
	return list, nil
}

// body returns a request to send; with open, into a thread that does not exist yet.
func (p *poster) body(i int, open bool) []byte {
	thread := p.thread
	if open {
		p.opened++
		thread = fmt.Sprintf("%s_%d", p.thread, p.opened)
	}
	return fmt.Appendf(nil, `{"session_id":%q,"channel":%q,"kind":"say","surface":"thread","thread_id":%q,"to":%q,"body":{"text":"%s %d"}}`,
		p.session, dock, thread, p.to, text, i)
}

func (p *poster) post(ctx context.Context, url string, body []byte) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	answer, err := p.client.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close() //nolint:errcheck // only read
	said, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s %s", url, answer.Status, said)
	}
	return err
}

// echoServer answers HTTP requests with the least possible work.
func echoServer(ctx context.Context) (url string, stop func(), err error) {
	at, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	server := &http.Server{ReadHeaderTimeout: 10 * time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err == nil {
			_, _ = w.Write(body) // the client may have disconnected
		}
	})}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(at) // it ends when it is closed
	}()
	return "http://" + at.Addr().String(), func() { _ = server.Close(); <-done }, nil
}
