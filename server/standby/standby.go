// Package standby answers the clients of a cluster's node while another node
// serves: it says that the node is alive but not ready, and which node serves,
// and where. It knows no hub, no key and no dialect.
package standby

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/gobwas/ws"

	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/server/problem"
)

// Headers of every answer except those about health, and of the handshake of a
// WebSocket that is about to be closed: the name of the node that stands by, and the
// address of the node that serves, if it is known.
const (
	Header        = "Parley-Standby"
	ServingHeader = "Parley-Serving"
)

// retryAfter is how long a client should wait before it asks again.
const retryAfter = time.Second

// Serving is the node that serves. The zero value means that none is known.
type Serving struct {
	Node    string `json:"node"`
	Address string `json:"address,omitempty"`
}

func (s Serving) String() string {
	switch {
	case s.Node == "":
		return "no node serves at the moment"
	case s.Address == "":
		return fmt.Sprintf("node %s serves", s.Node)
	}
	return fmt.Sprintf("node %s serves, at %s", s.Node, s.Address)
}

// Check is one condition that the node must meet to take over.
type Check struct {
	Name string
	Run  func() error // nil: it holds
}

// Node is a node that stands by.
type Node struct {
	Name    string
	Version string
	Serving func() Serving
	Checks  []Check
	Metrics http.Handler // for this machine only; nil: there are none

	closing chan struct{} // a place for each WebSocket that is being closed
}

// maxClosing bounds how many WebSockets are opened and closed at one time, to say where
// to connect; others are refused.
const maxClosing = 256

// Handler returns the handler of all requests to the node.
func (n Node) Handler() http.Handler {
	n.closing = make(chan struct{}, maxClosing)
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", n.healthz)
	mux.HandleFunc("GET /readyz", n.readyz)
	mux.HandleFunc("GET /metrics", n.metrics)
	mux.HandleFunc("/", n.elsewhere)
	return mux
}

func (n Node) healthz(w http.ResponseWriter, _ *http.Request) {
	write(w, http.StatusOK, map[string]string{"status": "ok", "version": n.Version})
}

// readyz always answers that the node is not ready, because it should be sent
// no work. Only callers on this machine see why a check failed.
func (n Node) readyz(w http.ResponseWriter, r *http.Request) {
	type result struct {
		Name   string `json:"name"`
		OK     bool   `json:"ok"`
		Reason string `json:"reason,omitempty"`
	}
	serving := n.Serving()
	results := []result{{"serving", false, serving.String()}}
	for _, check := range n.Checks {
		one := result{Name: check.Name, OK: true}
		if err := check.Run(); err != nil {
			if one.OK = false; local(r) {
				one.Reason = err.Error()
			}
		}
		results = append(results, one)
	}
	n.point(w, serving)
	write(w, http.StatusServiceUnavailable, map[string]any{
		"status": "not ready", "checks": results,
		"cluster": map[string]any{"node": n.Name, "serving": serving},
	})
}

func (n Node) metrics(w http.ResponseWriter, r *http.Request) {
	if n.Metrics == nil || !local(r) {
		n.elsewhere(w, r)
		return
	}
	n.Metrics.ServeHTTP(w, r)
}

// elsewhere refuses a request and says which node serves.
func (n Node) elsewhere(w http.ResponseWriter, r *http.Request) {
	serving := n.Serving()
	if upgrade(r) {
		select {
		case n.closing <- struct{}{}:
			n.close(w, r, serving)
			<-n.closing
			return
		default:
		}
	}
	n.point(w, serving)
	// Behind a TCP balancer only a new connection reaches another node.
	w.Header().Set("Connection", "close")
	err := fault.New(fault.Unavailable, "this node, %s, stands by: %s", n.Name, serving)
	err.Reason, err.RetryAfter = fault.NotServing, retryAfter
	if serving.Node != "" {
		err.Details = map[string]string{fault.DetailNode: serving.Node}
		if serving.Address != "" {
			err.Details[fault.DetailAddress] = serving.Address
		}
	}
	problem.Write(w, err)
}

func (n Node) point(w http.ResponseWriter, serving Serving) {
	w.Header().Set("Retry-After", fmt.Sprint(int(retryAfter.Seconds())))
	w.Header().Set(Header, n.Name)
	if serving.Address != "" {
		w.Header().Set(ServingHeader, serving.Address)
	}
}

// tryAgainLater is the registered close code 1013: the client should reconnect,
// perhaps to another address.
const tryAgainLater ws.StatusCode = 1013

// closeTimeout is how long a WebSocket may take to receive and answer its close frame.
const closeTimeout = 2 * time.Second

// close opens a WebSocket to close it: clients of WebSockets understand close codes
// better than statuses of a handshake.
func (n Node) close(w http.ResponseWriter, r *http.Request, serving Serving) {
	n.point(w, serving)
	upgrader := ws.HTTPUpgrader{Timeout: closeTimeout, Header: w.Header().Clone()}
	conn, rw, _, err := upgrader.Upgrade(r, w)
	if err != nil {
		if conn != nil {
			_ = conn.Close()
		}
		return
	}
	defer conn.Close() //nolint:errcheck // nothing is to be saved
	_ = conn.SetDeadline(time.Now().Add(closeTimeout))
	reason := serving.String()
	if most := ws.MaxControlFramePayloadSize - 2; len(reason) > most {
		reason = reason[:most]
	}
	if ws.WriteFrame(conn, ws.NewCloseFrame(ws.NewCloseFrameBody(tryAgainLater, strings.ToValidUTF8(reason, "")))) != nil {
		return
	}
	for range 16 { // what was on its way before the peer's own close frame
		frame, err := ws.ReadHeader(rw)
		if err != nil || frame.OpCode == ws.OpClose || frame.Length > 1<<16 {
			return
		}
		if _, err := rw.Discard(int(frame.Length)); err != nil {
			return
		}
	}
}

func write(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // the client may be gone; nobody else could be told
}
