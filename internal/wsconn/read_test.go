package wsconn_test

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gobwas/ws"
	"github.com/gobwas/ws/wsutil"

	"github.com/parley-hub/parley/internal/wsconn"
)

// Messages arrive whole, however the network cuts them: in a header, in a payload, or
// several at once.
func TestMessagesArriveInPieces(t *testing.T) {
	t.Parallel()
	texts := []string{"a", strings.Repeat("b", 200), "", strings.Repeat("c", 70_000), "d"}
	var sent bytes.Buffer
	for _, text := range texts {
		if err := ws.WriteFrame(&sent, ws.MaskFrame(ws.NewTextFrame([]byte(text)))); err != nil {
			t.Fatal(err)
		}
	}
	arrive := func(t *testing.T, c net.Conn, single int) {
		t.Helper()
		for _, piece := range append(slices.Collect(slices.Chunk(sent.Bytes()[:single], 1)), sent.Bytes()[single:]) {
			if _, err := c.Write(piece); err != nil {
				t.Fatal(err)
			}
		}
		for _, text := range texts {
			if got, err := wsutil.ReadServerText(c); err != nil || string(got) != "<"+text+">" {
				t.Fatalf("got %.20q of %d bytes, %v; want %.20q", got, len(got), err, text)
			}
		}
	}
	for name, single := range map[string]int{"byte by byte": 300, "together": 0} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			arrive(t, newRig(t, wsconn.Limits{}).dial(t), single)
		})
		t.Run(name+" over TLS", func(t *testing.T) {
			t.Parallel()
			r := newRig(t, wsconn.Limits{})
			web := httptest.NewTLSServer(r.serve(nil))
			t.Cleanup(func() { // the connections first
				_ = r.Close(t.Context())
				web.Close()
			})
			trusted := x509.NewCertPool()
			trusted.AddCert(web.Certificate())
			dialer := ws.Dialer{TLSConfig: &tls.Config{RootCAs: trusted}}
			c, _, _, err := dialer.Dial(t.Context(), "wss"+strings.TrimPrefix(web.URL, "https"))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = c.Close() })
			_ = c.SetDeadline(time.Now().Add(20 * time.Second))
			arrive(t, c, single)
		})
	}
}
