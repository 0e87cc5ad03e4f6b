package server

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/parley-hub/parley/server/access"
	"github.com/parley-hub/parley/server/config"
)

// certificate is a key pair on disk that is read again when a file changes,
// so that renewal needs no restart.
type certificate struct {
	certFile, keyFile string
	log               *slog.Logger

	mu   sync.Mutex
	pair *tls.Certificate
	seen [2]stamp
}

// stamp identifies a state of a file.
type stamp struct {
	modified time.Time
	size     int64
}

func loadCertificate(certFile, keyFile string, log *slog.Logger) (*certificate, error) {
	c := &certificate{certFile: certFile, keyFile: keyFile, log: log}
	seen, err := c.stamps()
	if err != nil {
		return nil, fmt.Errorf("tls: %w", err)
	}
	if err := c.load(); err != nil {
		return nil, fmt.Errorf("tls: %s and %s: %w", certFile, keyFile, err)
	}
	c.seen = seen
	return c, nil
}

func (c *certificate) load() error {
	pair, err := tls.LoadX509KeyPair(c.certFile, c.keyFile)
	if err != nil {
		return err
	}
	c.pair = &pair
	return nil
}

// names reports whether the certificate is for a host, by name or address.
func (c *certificate) names(host string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.pair.Leaf != nil && c.pair.Leaf.VerifyHostname(host) == nil
}

// hosts returns the certificate's names and addresses, without patterns and
// what only means this machine.
func (c *certificate) hosts() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var list []string
	if c.pair.Leaf == nil {
		return nil
	}
	for _, name := range c.pair.Leaf.DNSNames {
		if !strings.HasPrefix(name, "*") && !access.IsLoopbackName(name) {
			list = append(list, name)
		}
	}
	for _, ip := range c.pair.Leaf.IPAddresses {
		if !ip.IsLoopback() {
			list = append(list, ip.String())
		}
	}
	return list
}

func (c *certificate) stamps() (seen [2]stamp, err error) {
	for i, file := range []string{c.certFile, c.keyFile} {
		info, err := os.Stat(file)
		if err != nil {
			return seen, err
		}
		seen[i] = stamp{info.ModTime(), info.Size()}
	}
	return seen, nil
}

// get returns the current certificate. It is called at every handshake, beside
// which two file system lookups are cheap. If the pair cannot be read, perhaps
// because only one of its files was replaced yet, the one in use stays.
func (c *certificate) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	seen, err := c.stamps()
	if err != nil || seen == c.seen {
		return c.pair, nil
	}
	c.seen = seen
	if err := c.load(); err != nil {
		c.log.Warn("changed certificate cannot be used yet; the old one stays", "cert", c.certFile, "error", err)
	} else {
		c.log.Info("certificate read again", "cert", c.certFile)
	}
	return c.pair, nil
}

// TLS returns the TLS configuration of a listener with these settings; nil: TLS is off.
func TLS(cfg config.Config, log *slog.Logger) (*tls.Config, error) {
	secure, _, err := secured(cfg, log)
	return secure, err
}

func secured(cfg config.Config, log *slog.Logger) (*tls.Config, *certificate, error) {
	if cfg.TLS.Cert == "" {
		return nil, nil, nil
	}
	cert, err := loadCertificate(cfg.TLS.Cert, cfg.TLS.Key, log)
	if err != nil {
		return nil, nil, err
	}
	return &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: cert.get}, cert, nil
}
