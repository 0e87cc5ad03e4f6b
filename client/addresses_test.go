package client_test

import (
	"net"
	"strings"
	"testing"
	"time"

	"github.com/parley-hub/parley/client"
)

// TestANodeThatHangs: one of several addresses accepts connections and never
// answers, like a paused process. The others are still used.
func TestANodeThatHangs(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	hung, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer hung.Close() //nolint:errcheck // the test is over
	urls := "ws://" + hung.Addr().String() + ",ws" + strings.TrimPrefix(r.http.URL, "http")
	c, err := client.Dial(t.Context(), urls, client.Options{Log: quiet, Ping: time.Second, Timeout: wait})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}
