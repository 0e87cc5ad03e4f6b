package runner

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/parley-hub/parley/fault"
)

// MaxReply bounds what a provider may answer to one request, in bytes.
const MaxReply = 16 << 20

// finalError is the failure of a request that would fail again.
type finalError struct{ text string }

func (e *finalError) Error() string { return e.text }

// HTTP returns the client that providers are reached with. It refuses
// redirects, because a key must not reach another host, and it bounds answers.
func HTTP() *http.Client {
	transport := http.DefaultTransport
	if shared, ok := transport.(*http.Transport); ok {
		own := shared.Clone()
		own.ResponseHeaderTimeout = 5 * time.Minute
		transport = own
	}
	return &http.Client{Transport: boundedTransport{transport}}
}

type boundedTransport struct{ next http.RoundTripper }

// RoundTrip sends a request and bounds its answer.
func (t boundedTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := t.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	if answer.StatusCode >= 300 && answer.StatusCode < 400 {
		_ = answer.Body.Close()
		return nil, &finalError{fmt.Sprintf("the provider answered with a redirect (HTTP %d), which is not followed; check the base URL", answer.StatusCode)}
	}
	answer.Body = &boundedBody{ReadCloser: answer.Body, left: MaxReply}
	return answer, nil
}

// CloseIdleConnections closes connections that are not in use.
func (t boundedTransport) CloseIdleConnections() {
	if idle, ok := t.next.(interface{ CloseIdleConnections() }); ok {
		idle.CloseIdleConnections()
	}
}

type boundedBody struct {
	io.ReadCloser
	left int64
}

func (b *boundedBody) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, &finalError{fmt.Sprintf("the provider's answer is larger than %d bytes", MaxReply)}
	}
	n, err := b.ReadCloser.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	return n, err
}

// CheckBaseURL refuses a base URL through which a key could leak.
func CheckBaseURL(text string) error {
	u, err := url.Parse(text)
	if err != nil {
		return fault.New(fault.Invalid, "the base URL cannot be read; it is like https://models.example.org/v1")
	}
	switch {
	case u.Scheme != "http" && u.Scheme != "https", u.Host == "":
		err = errors.New("must begin with http:// or https:// and a host")
	case u.User != nil:
		err = errors.New("must not hold a name or password; give the key apart")
	case u.RawQuery != "" || u.Fragment != "":
		err = errors.New("must not have a query or fragment")
	default:
		return nil
	}
	return fault.Wrap(fault.Invalid, err, "the base URL %v", err)
}
