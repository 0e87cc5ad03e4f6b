package v1

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/parley-hub/parley/fault"
)

// MaxAnswer bounds what is read as a whole: an answer, or one event of many.
const MaxAnswer = 64 << 20

// callTimeout bounds an answer that should come soon.
const callTimeout = 30 * time.Second

// Options of a Client. The zero value is a client without a token.
type Options struct {
	// Token of an access key; empty sends none.
	Token string
	// HTTP makes the requests; nil means a client that honours the proxy
	// variables of the environment. It must not have a Timeout: streams and
	// downloads take as long as they take.
	HTTP *http.Client
	// Relocate returns the hub's current address and the client to reach it with. It
	// is called before a stream reconnects. An empty base: the hub has not moved; a
	// nil via: it is reached as before.
	Relocate func() (base string, via *http.Client)
	// Notify is called when a stream waits for the hub, and when the hub is back.
	Notify func(text string)
}

// Client speaks /v1 with one hub. It is safe for concurrent use.
type Client struct {
	opts Options

	bases []string // that were given

	mu   sync.Mutex // guards what Relocate and search change
	base string
	via  *http.Client
}

// New makes a client for the hub at base, such as http://127.0.0.1:7440. For a hub
// with several nodes, base lists some of their addresses, separated by commas: the
// client finds the node that serves, and follows it when that changes.
func New(base string, opts Options) (*Client, error) {
	bases, err := cleanBases(base)
	if err != nil {
		return nil, err
	}
	// The token of a file often ends with a line break.
	if opts.Token = strings.TrimSpace(opts.Token); strings.ContainsFunc(opts.Token, unicode.IsControl) {
		return nil, fault.New(fault.Invalid, "the token has control characters, such as a line break, inside; it is one line, as parley keys add printed it")
	}
	if opts.HTTP == nil {
		opts.HTTP = &http.Client{Transport: Transport(false)}
	}
	return &Client{opts: opts, bases: bases, base: bases[0], via: opts.HTTP}, nil
}

// Transport returns the transport that New uses. With unverified, it accepts every
// certificate: only for a hub on this machine that was found by other means.
func Transport(unverified bool) *http.Transport {
	return &http.Transport{
		Proxy:           http.ProxyFromEnvironment,
		TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: unverified}, // see above
	}
}

func cleanBase(base string) (string, error) {
	parsed, err := url.Parse(base)
	if err != nil || parsed.Host == "" || parsed.Scheme != "http" && parsed.Scheme != "https" {
		return "", fault.New(fault.Invalid, "%q is not the URL of a hub; it looks like http://127.0.0.1:7440", base)
	}
	if port := parsed.Port(); port != "" {
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
			return "", fault.New(fault.Invalid, "%q has no port from 1 to 65535; it looks like http://127.0.0.1:7440", base)
		}
	}
	base = strings.TrimSuffix(base, "/")
	for _, part := range []string{"/console", "/agh", "/hpd"} { // as a hub's banner lists them
		if hub, ok := strings.CutSuffix(base, part); ok {
			return "", fault.New(fault.Invalid, "%q is a part of a hub; the hub itself is %s", base, hub)
		}
	}
	return base, nil
}

// URL returns the address at which the client expects the hub.
func (c *Client) URL() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.base
}

// Errors of an address where no hub answers, or where one answers over TLS only.
var (
	ErrNoHub = errors.New("no hub answers there")
	ErrTLS   = errors.New("the hub speaks TLS there, and was asked without")
)

// Token returns the token that the client sends; empty: none.
func (c *Client) Token() string { return c.opts.Token }

// HTTP returns the client that requests are made with.
func (c *Client) HTTP() *http.Client {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.via
}

// Relocate calls Options.Relocate, and returns the URL that the client uses from then
// on.
func (c *Client) Relocate() string {
	if c.opts.Relocate == nil {
		return c.URL()
	}
	to, via := c.opts.Relocate()
	base, err := cleanBase(to)
	if err != nil {
		return c.URL()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.base = base
	if via != nil {
		c.via = via
	}
	return c.base
}

// Call sends body as JSON unless it is nil, and decodes the answer into into
// unless that is nil. The path begins with /v1/, or with the path of another
// interface of the hub. Call serves what has no method of its own.
func (c *Client) Call(ctx context.Context, method, path string, body, into any) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return c.call(ctx, method, path, nil, body, into)
}

// CallKeyed is like Call, with the header Idempotency-Key: requests with the
// same key take effect once.
func (c *Client) CallKeyed(ctx context.Context, method, path, key string, body, into any) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return c.call(ctx, method, path, http.Header{"Idempotency-Key": {key}}, body, into)
}

func (c *Client) call(ctx context.Context, method, path string, header http.Header, body, into any) error {
	answer, err := c.send(ctx, method, path, header, body)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	raw, err := io.ReadAll(&bounded{r: answer.Body, left: MaxAnswer})
	if err != nil {
		return fmt.Errorf("ask the hub: %w", err)
	}
	if into == nil {
		return nil
	}
	if err := json.Unmarshal(raw, into); err != nil {
		return fmt.Errorf("%w: the answer is not the JSON that was expected (%w): %s", ErrNoHub, err, glimpse(raw))
	}
	return nil
}

// Download gets an answer of any size and duration. The caller closes it.
func (c *Client) Download(ctx context.Context, path string) (io.ReadCloser, error) {
	answer, err := c.send(ctx, http.MethodGet, path, nil, nil)
	if err != nil {
		return nil, err
	}
	return answer.Body, nil
}

// Backup downloads a backup of the hub as an archive. The caller closes it.
func (c *Client) Backup(ctx context.Context) (io.ReadCloser, error) {
	return c.Download(ctx, "/v1/backup")
}

// Imported is the result of importing a bundle.
type Imported struct {
	HomeID   string `json:"home_id"`
	Channels []struct {
		ID        string `json:"channel_id"`
		From      string `json:"imported_from"`
		Envelopes uint64 `json:"envelopes"`
	} `json:"channels"`
	Contents int `json:"contents"`
}

// Import makes new, ended channels of a bundle, as an operator.
func (c *Client) Import(ctx context.Context, bundle io.Reader) (*Imported, error) {
	if len(c.bases) > 1 { // a body can be sent once only, so find the serving node first
		if _, err := c.Session(ctx); err != nil {
			return nil, err
		}
	}
	request, err := c.request(ctx, http.MethodPost, "/v1/import", bundle)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/jsonl")
	answer, err := c.HTTP().Do(request)
	if err != nil {
		return nil, unanswered(err)
	}
	defer answer.Body.Close()
	if answer.StatusCode >= 300 {
		return nil, refusal(answer)
	}
	raw, err := io.ReadAll(&bounded{r: answer.Body, left: MaxAnswer})
	if err != nil {
		return nil, fmt.Errorf("ask the hub: %w", err)
	}
	into := new(Imported)
	return into, json.Unmarshal(raw, into)
}

// Bundle downloads a channel as a bundle or, with home, its whole home. The caller
// closes it.
func (c *Client) Bundle(ctx context.Context, channel string, home bool) (io.ReadCloser, error) {
	return c.Download(ctx, fmt.Sprintf("%s/export?form=bundle&home=%t", channelPath(channel), home))
}

// send sends one request to the serving node. A refusal is returned as an error.
func (c *Client) send(ctx context.Context, method, path string, header http.Header, body any) (*http.Response, error) {
	var payload []byte
	if body != nil {
		var err error
		if payload, err = json.Marshal(body); err != nil {
			return nil, err
		}
		header = header.Clone()
		if header == nil {
			header = http.Header{}
		}
		header.Set("Content-Type", "application/json")
	}
	for search := c.search(); ; {
		answer, err := c.sendOnce(ctx, method, path, header, payload)
		if err == nil || !search.retry(ctx, err) {
			return answer, err
		}
	}
}

func (c *Client) sendOnce(ctx context.Context, method, path string, header http.Header, payload []byte) (*http.Response, error) {
	var body io.Reader
	if payload != nil {
		body = bytes.NewReader(payload)
	}
	request, err := c.request(ctx, method, path, body)
	if err != nil {
		return nil, err
	}
	maps.Copy(request.Header, header)
	answer, err := c.HTTP().Do(request)
	if err != nil {
		return nil, unanswered(err)
	}
	if answer.StatusCode < http.StatusBadRequest {
		return answer, nil
	}
	defer answer.Body.Close()
	return nil, refusal(answer)
}

func (c *Client) request(ctx context.Context, method, path string, body io.Reader) (*http.Request, error) {
	request, err := http.NewRequestWithContext(ctx, method, c.URL()+path, body)
	if err == nil && c.opts.Token != "" {
		request.Header.Set("Authorization", "Bearer "+c.opts.Token)
	}
	return request, err
}

// unanswered returns the error of a request without an answer.
func unanswered(err error) error {
	_, unnamed := errors.AsType[*net.DNSError](err)
	if refused, ok := errors.AsType[*net.OpError](err); ok && refused.Op == "dial" && !unnamed {
		return fmt.Errorf("ask the hub: %w; is it running?", err)
	}
	return fmt.Errorf("ask the hub: %w", err)
}

// glimpse returns the beginning of an unexpected answer, in one line.
func glimpse(raw []byte) string {
	const most = 80
	text := strings.Join(strings.Fields(strings.ToValidUTF8(string(raw[:min(len(raw), 4*most)]), "")), " ")
	if runes := []rune(text); len(runes) > most {
		text = string(runes[:most]) + "…"
	}
	return strconv.Quote(text)
}

// refusal returns the error in a refused answer.
func refusal(answer *http.Response) error {
	raw, err := io.ReadAll(io.LimitReader(answer.Body, 1<<20))
	if err != nil {
		return fmt.Errorf("ask the hub: %w", err)
	}
	var problem struct {
		Code    fault.Code        `json:"code"`
		Reason  fault.Reason      `json:"reason"`
		Details map[string]string `json:"details"`
		Detail  string            `json:"detail"`

		// AGH's form, under /agh.
		Error      string `json:"error"`
		Diagnostic struct {
			Code   fault.Code   `json:"code"`
			Reason fault.Reason `json:"reason"`
		} `json:"diagnostic"`

		// HPD's form, under /hpd.
		Errors map[string][]string `json:"errors"`
	}
	err = json.Unmarshal(raw, &problem)
	if err == nil && problem.Diagnostic.Code != "" {
		return &fault.Error{Code: problem.Diagnostic.Code, Reason: problem.Diagnostic.Reason, Message: problem.Error}
	}
	for _, messages := range problem.Errors {
		if code, ok := codes[answer.StatusCode]; ok && problem.Code == "" {
			return &fault.Error{Code: code, Message: strings.Join(messages, " ")}
		}
	}
	if answer.StatusCode == http.StatusBadRequest && answer.TLS == nil && strings.HasPrefix(string(raw), "Client sent an HTTP request to an HTTPS server") {
		return ErrTLS
	}
	if err != nil || problem.Code == "" {
		return fmt.Errorf("%w: the answer is %s: %s", ErrNoHub, answer.Status, glimpse(raw))
	}
	return &fault.Error{Code: problem.Code, Reason: problem.Reason, Details: problem.Details, Message: problem.Detail}
}

// codes are used for problems without a code of ours, by status.
var codes = map[int]fault.Code{
	http.StatusBadRequest: fault.Invalid, http.StatusUnauthorized: fault.AuthFailed, http.StatusForbidden: fault.AccessDenied,
	http.StatusNotFound: fault.NotFound, http.StatusConflict: fault.Conflict, http.StatusGone: fault.Gap,
	http.StatusRequestEntityTooLarge: fault.TooLarge, http.StatusTooManyRequests: fault.RateLimited,
	http.StatusInternalServerError: fault.Internal, http.StatusServiceUnavailable: fault.Unavailable,
}
