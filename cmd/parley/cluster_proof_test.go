//go:build unix

package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/jwt/v2"
	nats "github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nkeys"
)

// files are a folder of certificates and credentials.
type files struct {
	t   *testing.T
	dir string
}

func (f files) path(name string) string { return filepath.Join(f.dir, name) }

func (f files) write(name string, data []byte) string {
	f.t.Helper()
	if err := os.WriteFile(f.path(name), data, 0o600); err != nil {
		f.t.Fatal(err)
	}
	return f.path(name)
}

// certificate makes NAME.crt and NAME.key, signed by themselves.
func (f files) certificate(name string) {
	f.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		f.t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		f.t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		f.t.Fatal(err)
	}
	f.write(name+".crt", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	f.write(name+".key", pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}))
}

// must returns what a maker of keys made.
func must[T any](t *testing.T, made T, err error) T {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// credentials makes an operator with an account, the credentials of one of its
// users (node.creds) and of a stranger (stranger.creds), and what the
// configuration of a server says of it.
func (f files) credentials() (conf string) {
	f.t.Helper()
	t := f.t
	pair := func(create func() (nkeys.KeyPair, error)) (key nkeys.KeyPair, public string) {
		key, err := create()
		if err == nil {
			public, err = key.PublicKey()
		}
		return key, must(t, public, err)
	}
	operator, operatorID := pair(nkeys.CreateOperator)
	trusted, err := jwt.NewOperatorClaims(operatorID).Encode(operator)
	trusted = must(t, trusted, err)
	preload := ""
	account := func(creds string, known bool) {
		key, id := pair(nkeys.CreateAccount)
		claims := jwt.NewAccountClaims(id)
		claims.Limits.JetStreamLimits = jwt.JetStreamLimits{MemoryStorage: -1, DiskStorage: -1, Streams: -1, Consumer: -1}
		text, err := claims.Encode(operator)
		if known {
			preload += fmt.Sprintf("  %s: %s\n", id, must(t, text, err))
		}
		user, userID := pair(nkeys.CreateUser)
		proof, err := jwt.NewUserClaims(userID).Encode(key)
		proof = must(t, proof, err)
		seed, err := user.Seed()
		seed = must(t, seed, err)
		both, err := jwt.FormatUserConfig(proof, seed)
		f.write(creds, must(t, both, err))
	}
	account("node.creds", true)
	account("stranger.creds", false)
	_, system := pair(nkeys.CreateAccount)
	text, err := jwt.NewAccountClaims(system).Encode(operator)
	preload += fmt.Sprintf("  %s: %s\n", system, must(t, text, err))
	return fmt.Sprintf("operator: %s\nsystem_account: %s\nresolver: MEMORY\nresolver_preload {\n%s}\n", trusted, system, preload)
}

// server starts a NATS server with more settings than where it is.
func (f files) server(conf string) *nats.Server {
	f.t.Helper()
	dir := f.t.TempDir()
	text := fmt.Sprintf("listen: \"127.0.0.1:-1\"\nhttp: \"127.0.0.1:-1\"\njetstream { store_dir: %q, sync_interval: always }\n%s", dir, conf)
	opts, err := nats.ProcessConfigFile(f.write(filepath.Base(dir)+".conf", []byte(text)))
	if err != nil {
		f.t.Fatal(err)
	}
	opts.NoLog, opts.NoSigs = true, true
	s, err := nats.NewServer(opts)
	if err != nil {
		f.t.Fatal(err)
	}
	s.Start()
	f.t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	if !s.ReadyForConnections(startTimeout) {
		f.t.Fatal("the NATS server does not start")
	}
	return s
}

// TestClusterProof: a node and its NATS servers prove who they are, with
// certificates and with credentials; where they cannot, the setting is named.
func TestClusterProof(t *testing.T) {
	t.Parallel()
	f := files{t, t.TempDir()}
	for _, name := range []string{"server", "node", "stranger"} {
		f.certificate(name)
	}
	s := f.server(f.credentials() + fmt.Sprintf("tls { cert_file: %q, key_file: %q, ca_file: %q, verify: true }\n", f.path("server.crt"), f.path("server.key"), f.path("node.crt")))
	at := "--cluster=tls://" + s.Addr().String()
	with := func(settings ...string) (args []string) {
		right := map[string]string{"creds": "node.creds", "tls.ca": "server.crt", "tls.cert": "node.crt", "tls.key": "node.key"}
		for _, other := range settings {
			key, file, _ := strings.Cut(other, "=")
			right[key] = file
		}
		for key, file := range right {
			if file != "" {
				args = append(args, "--set", "cluster."+key+"="+f.path(file))
			}
		}
		return args
	}
	f.write("empty", nil)
	for what, c := range map[string]struct {
		settings []string
		want     string
	}{
		"no credentials":            {[]string{"creds="}, "set cluster.creds"},
		"credentials of a stranger": {[]string{"creds=stranger.creds"}, "set cluster.creds"},
		"credentials that are none": {[]string{"creds=nothing"}, "cluster.creds: "},
		"unknown servers":           {[]string{"tls.ca="}, "set cluster.tls.ca"},
		"servers of others":         {[]string{"tls.ca=stranger.crt"}, "set cluster.tls.ca"},
		"a CA without certificates": {[]string{"tls.ca=empty"}, "cluster.tls.ca: "},
		"no certificate":            {[]string{"tls.cert=", "tls.key="}, "set cluster.tls.cert"},
		"a stranger's certificate":  {[]string{"tls.cert=stranger.crt", "tls.key=stranger.key"}, "set cluster.tls.cert"},
		"a key of another":          {[]string{"tls.key=stranger.key"}, "cluster.tls.cert and cluster.tls.key: "},
	} {
		if code, _, errs := call(t, nil, append([]string{"cluster", "status", at}, with(c.settings...)...)...); code == exitFine || !strings.Contains(errs, c.want) {
			t.Errorf("%s: exit %d without %q: %s", what, code, c.want, errs)
		}
	}
	monitor := []string{at, "--set", "cluster.monitor=http://" + s.MonitorAddr().String()}
	f.serves(append(with(), monitor...))
}

// TestClusterToken: a token in the servers' address is enough, a wrong one is
// refused, and neither is told.
func TestClusterToken(t *testing.T) {
	t.Parallel()
	f := files{t, t.TempDir()}
	s := f.server("authorization { token: correct-horse }\n")
	address := s.Addr().String()
	for _, wrong := range []string{"", "battery-staple@"} {
		code, _, errs := call(t, nil, "cluster", "status", "--cluster=nats://"+wrong+address)
		if code == exitFine || !strings.Contains(errs, "token in cluster.url") || strings.Contains(errs, "staple") {
			t.Errorf("exit %d: %s", code, errs)
		}
	}
	f.serves([]string{"--cluster=nats://correct-horse@" + address, "--set", "cluster.monitor=http://" + s.MonitorAddr().String()})
}

// serves makes a cluster with these flags, and has a node serve.
func (f files) serves(flags []string) {
	f.t.Helper()
	if code, _, errs := call(f.t, nil, append([]string{"cluster", "init", "--shards=1", "--replicas=1"}, flags...)...); code != exitFine {
		f.t.Fatalf("init: exit %d: %s", code, errs)
	}
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	f.t.Cleanup(cancel)
	n := &nodes{t: f.t, ctx: ctx, list: map[string]*nodeProcess{}}
	n.launch("a", nil, append([]string{"--node-name=a", "--data", f.path("data"), "--listen=127.0.0.1:0", "--set", "cluster.replicas=1"}, flags...)...)
	n.serves("")
}
