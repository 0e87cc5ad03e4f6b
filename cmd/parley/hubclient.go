package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/server"
	"github.com/parley-hub/parley/server/access"
	"github.com/parley-hub/parley/server/problem"
)

const (
	maxAnswer   = 64 << 20         // of what is read as a whole: an answer, or one event of many
	callTimeout = 30 * time.Second // for one that should come soon
)

// hubClient speaks /v1 with a hub.
type hubClient struct {
	base  string
	token string
	http  *http.Client
	again func()       // finds the hub again, if it may have moved; nil: it has not
	tell  func(string) // says that the hub is waited for; nil: nobody listens
}

// newHubClient makes a client; own means that the hub is the one on this
// machine that was found through its data folder.
func newHubClient(base, token string, own bool) (*hubClient, error) {
	parsed, err := url.Parse(base)
	if err != nil || parsed.Host == "" || parsed.Scheme != "http" && parsed.Scheme != "https" {
		return nil, usageError("%q is no hub's URL; it looks like http://127.0.0.1:7440", base)
	}
	transport := &http.Transport{
		Proxy:           http.ProxyFromEnvironment,
		TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: own}, // see above
	}
	return &hubClient{
		base: strings.TrimSuffix(base, "/"), token: token,
		http: &http.Client{Transport: transport},
	}, nil
}

// call sends body as JSON, if there is one, and reads the answer into into.
func (h *hubClient) call(ctx context.Context, method, path string, body, into any) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	answer, err := h.send(ctx, method, path, body)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	raw, err := io.ReadAll(&bounded{r: answer.Body, left: maxAnswer})
	if err != nil {
		return fmt.Errorf("ask the hub: %w", err)
	}
	if into == nil {
		return nil
	}
	if err := json.Unmarshal(raw, into); err != nil {
		return fmt.Errorf("the hub's answer is no JSON that was expected (%w): %.200s", err, raw)
	}
	return nil
}

// bounded is an answer of which at most so much is read: what is longer is an
// error, not a shorter one.
type bounded struct {
	r    io.Reader
	left int
}

var errTooLong = fmt.Errorf("its answer is over %d MiB, which is what is read at once; ask for less", maxAnswer>>20)

func (b *bounded) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, errTooLong
	}
	n, err := b.r.Read(p[:min(len(p), b.left)])
	b.left -= n
	return n, err
}

// download asks for something that takes as long as it takes. The caller closes
// it.
func (h *hubClient) download(ctx context.Context, method, path string) (io.ReadCloser, error) {
	answer, err := h.send(ctx, method, path, nil)
	if err != nil {
		return nil, err
	}
	return answer.Body, nil
}

// send sends one request; a refusal is an error.
func (h *hubClient) send(ctx context.Context, method, path string, body any) (*http.Response, error) {
	var payload io.Reader
	if body != nil {
		raw, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		payload = bytes.NewReader(raw)
	}
	request, err := http.NewRequestWithContext(ctx, method, h.base+path, payload)
	if err != nil {
		return nil, err
	}
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	if h.token != "" {
		request.Header.Set("Authorization", "Bearer "+h.token)
	}
	answer, err := h.http.Do(request)
	if err != nil {
		return nil, fmt.Errorf("ask the hub: %w; is it running?", err)
	}
	if answer.StatusCode < http.StatusBadRequest {
		return answer, nil
	}
	defer answer.Body.Close()
	raw, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer))
	if err != nil {
		return nil, fmt.Errorf("ask the hub: %w", err)
	}
	return nil, h.refusal(answer, raw)
}

// refusal turns an answer into the error that the hub meant.
func (h *hubClient) refusal(answer *http.Response, raw []byte) error {
	var p problem.Problem
	if err := json.Unmarshal(raw, &p); err != nil || p.Code == "" {
		return fmt.Errorf("the hub answered %s: %.200s", answer.Status, raw)
	}
	err := fault.New(p.Code, "%s", p.Detail)
	return err
}

// Add, List and Revoke make the client a keyStore.

func (h *hubClient) Add(ctx context.Context, role access.Role, agent string) (string, access.Key, error) {
	var made server.NewKey
	err := h.call(ctx, http.MethodPost, "/v1/keys", server.KeyRequest{Role: role, Agent: agent}, &made)
	return made.Token, made.Key, err
}

func (h *hubClient) List(ctx context.Context) ([]access.Key, error) {
	var list server.KeyList
	err := h.call(ctx, http.MethodGet, "/v1/keys", nil, &list)
	return list.Keys, err
}

func (h *hubClient) Revoke(ctx context.Context, id string) (access.Key, error) {
	var key access.Key
	err := h.call(ctx, http.MethodDelete, "/v1/keys/"+url.PathEscape(id), nil, &key)
	return key, err
}
