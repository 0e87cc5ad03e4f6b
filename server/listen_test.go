package server_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/parley-hub/parley/server"
	"github.com/parley-hub/parley/server/access"
	"github.com/parley-hub/parley/server/config"
)

func TestWhereItMayListen(t *testing.T) {
	t.Parallel()
	taken, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = taken.Close() })
	tests := []struct {
		name   string
		listen string
		keys   int
		edit   func(*config.Config)
		want   string // in the refusal
	}{
		{"loopback", "127.0.0.1:0", 0, nil, ""},
		{"localhost", "localhost:0", 0, nil, ""},
		{"all, nothing configured", "0.0.0.0:0", 0, nil, "refused to listen on 0.0.0.0:0"},
		{"no host is all", ":0", 0, nil, "refused to listen on :0"},
		{"IPv6 all", "[::]:0", 0, nil, "refused to listen"},
		{"all, insecure", "0.0.0.0:0", 0, func(c *config.Config) { c.HTTP.Insecure = true }, ""},
		{"all, behind a proxy, with a key", "0.0.0.0:0", 1, func(c *config.Config) { c.HTTP.BehindProxy = true }, ""},
		{"all, behind a proxy, no key", "0.0.0.0:0", 0, func(c *config.Config) { c.HTTP.BehindProxy = true }, "parley keys add"},
		{"all, key only", "0.0.0.0:0", 1, nil, "there is no TLS"},
		{"all, none always", "0.0.0.0:0", 1, func(c *config.Config) { c.HTTP.BehindProxy = true; c.Exposing = []string{"ag2.allow_none is always"} }, "ag2.allow_none"},
		{"in use", taken.Addr().String(), 0, nil, "address already in use"},
		{"nonsense", "nonsense", 0, nil, "it looks like 127.0.0.1:7440"},
		{"port out of range", "127.0.0.1:99999", 0, nil, "it looks like 127.0.0.1:7440"},
		{"certificate missing", "127.0.0.1:0", 0, func(c *config.Config) { c.TLS.Cert, c.TLS.Key = "none.pem", "none.pem" }, "tls: stat none.pem"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			keys := access.NewKeys()
			for range tc.keys {
				if _, _, err := keys.Add(t.Context(), access.Operator, "", nil); err != nil {
					t.Fatal(err)
				}
			}
			cfg := config.Core.Default()
			cfg.HTTP.Listen = tc.listen
			if tc.edit != nil {
				tc.edit(&cfg)
			}
			s, err := server.New(t.Context(), cfg, server.Deps{Keys: keys})
			if tc.want == "" {
				if err != nil {
					t.Fatal(err)
				}
				if !strings.HasPrefix(s.URL(), "http://127.0.0.1:") && (tc.listen != "localhost:0" || !strings.HasPrefix(s.URL(), "http://[::1]:")) {
					t.Errorf("URL %s does not lead here", s.URL())
				}
				if err := s.Close(); err != nil {
					t.Error(err)
				}
				return
			}
			if err == nil {
				_ = s.Close()
				t.Fatal("it listens")
			}
			if !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%q lacks %q", err, tc.want)
			}
		})
	}
	if _, err := server.New(t.Context(), config.Core.Default(), server.Deps{}); err == nil {
		t.Error("a server without keys was made")
	}
}

// pair makes a certificate with a serial number that distinguishes it from others.
func pair(t *testing.T, serial int64) (certPEM, keyPEM []byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: "hub"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), DNSNames: []string{"localhost", "desk.example", "*.rooms.example"}, IPAddresses: []net.IP{net.IPv4(192, 0, 2, 7)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	rawKey, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: rawKey})
}

// certified makes a certificate's files and has a configuration name them.
func certified(t *testing.T) func(*config.Config) {
	t.Helper()
	dir := t.TempDir()
	cert, key := pair(t, 1)
	for name, data := range map[string][]byte{"cert.pem": cert, "key.pem": key} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return func(c *config.Config) {
		c.TLS.Cert, c.TLS.Key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	}
}

// Without http.hosts the hub answers under its certificate's names and addresses.
func TestHostsAreTheCertificates(t *testing.T) {
	t.Parallel()
	secure := certified(t)
	for _, test := range []struct {
		name  string
		edit  func(*config.Config)
		hosts map[string]int
	}{
		{"a certificate", secure, map[string]int{
			"desk.example:7440": 200, "DESK.example": 200, "a.rooms.example": 200, "192.0.2.7:7440": 200,
			"evil.example": 403, "192.0.2.8": 403, "rooms.example": 403, "hub": 403, "localhost": 200,
		}},
		{"other hosts", func(c *config.Config) { secure(c); c.HTTP.Hosts = []string{"door.example"} }, map[string]int{
			"door.example": 200, "desk.example": 403, "192.0.2.7": 403, "localhost": 200,
		}},
		{"no certificate", func(*config.Config) {}, map[string]int{"desk.example": 403, "localhost": 200}},
	} {
		h := start(t, func(c *config.Config, _ *server.Deps) { test.edit(c) })
		for host, want := range test.hosts {
			if status, body := h.do(t, http.MethodGet, "/healthz", "", "Host", host); status != want {
				t.Errorf("%s: %s is answered %d, want %d: %s", test.name, host, status, want, body)
			}
		}
	}
}

func TestCertificateIsReadAgain(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	certFile, keyFile := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	edits := 0
	put := func(file string, data []byte) {
		t.Helper()
		edits++
		if err := os.WriteFile(file, data, 0o600); err != nil {
			t.Fatal(err)
		}
		changed := time.Now().Add(time.Duration(edits) * time.Second) // whatever the clock's grain
		if err := os.Chtimes(file, changed, changed); err != nil {
			t.Fatal(err)
		}
	}
	firstCert, firstKey := pair(t, 1)
	secondCert, secondKey := pair(t, 2)
	put(certFile, firstCert)
	put(keyFile, firstKey)
	h := start(t, func(c *config.Config, _ *server.Deps) { c.TLS.Cert, c.TLS.Key = certFile, keyFile })
	if !strings.HasPrefix(h.URL(), "https://127.0.0.1:") {
		t.Fatalf("URL %s", h.URL())
	}
	serial := func() int64 {
		t.Helper()
		dialer := tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true}} // a test's own certificate
		c, err := dialer.DialContext(context.Background(), "tcp", h.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		return c.(*tls.Conn).ConnectionState().PeerCertificates[0].SerialNumber.Int64()
	}
	if got := serial(); got != 1 {
		t.Errorf("serial %d, want 1", got)
	}
	put(certFile, secondCert) // its key has not followed yet
	if got := serial(); got != 1 {
		t.Errorf("half replaced: serial %d, want 1", got)
	}
	put(keyFile, secondKey)
	if got := serial(); got != 2 {
		t.Errorf("replaced: serial %d, want 2", got)
	}
	if err := os.Remove(certFile); err != nil {
		t.Fatal(err)
	}
	if got := serial(); got != 2 {
		t.Errorf("removed: serial %d, want 2", got)
	}
	h.want(t, "GET", "/healthz", "", 200, "ok")
}

// Beyond this machine the addresses that work are those that http.hosts or the
// certificate names.
func TestAddresses(t *testing.T) {
	t.Parallel()
	secure := certified(t)
	for _, test := range []struct {
		listen string
		edit   func(*config.Config)
		want   string // PORT is the server's
	}{
		{"127.0.0.1:0", secure, "[]"},
		{"0.0.0.0:0", secure, "[https://desk.example:PORT https://192.0.2.7:PORT]"},
		{"0.0.0.0:0", func(c *config.Config) { secure(c); c.HTTP.Hosts = []string{"door.example", "ported.example:8443"} }, "[https://door.example:PORT https://ported.example:8443]"},
		{"0.0.0.0:0", func(c *config.Config) { c.HTTP.BehindProxy, c.HTTP.Hosts = true, []string{"door.example"} }, "[https://door.example]"},
	} {
		keys := access.NewKeys()
		if _, _, err := keys.Add(t.Context(), access.Operator, "", nil); err != nil {
			t.Fatal(err)
		}
		cfg := config.Core.Default()
		cfg.HTTP.Listen = test.listen
		test.edit(&cfg)
		s, err := server.New(t.Context(), cfg, server.Deps{Keys: keys})
		if err != nil {
			t.Fatal(err)
		}
		_, port, _ := net.SplitHostPort(s.Addr().String())
		if got := strings.ReplaceAll(fmt.Sprint(s.Addresses()), ":"+port, ":PORT"); got != test.want {
			t.Errorf("listening on %s: %s, want %s", test.listen, got, test.want)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}
