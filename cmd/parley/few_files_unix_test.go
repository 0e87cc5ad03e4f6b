//go:build unix

package main

import (
	"fmt"
	"net"
	"net/http"
	"os/exec"
	"strings"
	"testing"

	"github.com/parley-hub/parley/internal/bench"
)

// Where few files may be open, connections that say nothing leave the store what it
// needs: posts and backups go on.
func TestIdleConnectionsLeaveFilesForTheStore(t *testing.T) {
	t.Parallel()
	const files, sockets = 256, 400
	dir := t.TempDir()
	serve := siegeHub("parley")(t.Context(), dir, []string{"PARLEY_LIMITS_CONNECTIONS_PEER=20000", "PARLEY_HTTP_HEADER_TIMEOUT=10m"})
	limited := exec.CommandContext(t.Context(), "sh", append([]string{"-c", fmt.Sprintf(`ulimit -n %d && exec "$0" "$@"`, files)}, serve.Args...)...)
	limited.Env = serve.Env
	hub, err := bench.StartProcess(limited)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := hub.Stop(); err != nil {
			t.Error(err)
		}
	}()
	s := &site{t: t, at: started{URL: hub.URL, Agents: hub.Socket()}}
	joinAs(t, s.at, "bob")
	var opened struct {
		ID string `json:"channel_id"`
	}
	if err := s.ask(http.MethodPost, "/v1/agents", `{"name":"alice"}`, nil); err != nil {
		t.Fatal(err)
	}
	if err := s.ask(http.MethodPost, "/v1/channels", `{"type":"conversation","creator":"alice","participants":["bob"]}`, &opened); err != nil {
		t.Fatal(err)
	}
	for range sockets {
		c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", strings.TrimPrefix(hub.URL, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close() //nolint:errcheck // the hub may have closed it
	}
	for range 3 {
		if err := s.ask(http.MethodPost, "/v1/channels/"+opened.ID+"/events", `{"sender":"alice","text":"x"}`, nil); err != nil {
			t.Errorf("a post beside %d idle connections: %v", sockets, err)
		}
		if err := s.ask(http.MethodGet, "/v1/backup", "", nil); err != nil {
			t.Errorf("a backup beside %d idle connections: %v", sockets, err)
		}
	}
	if err := s.ask(http.MethodGet, "/readyz", "", nil); err != nil {
		t.Error(err)
	}
}
