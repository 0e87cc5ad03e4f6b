package main

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"

	"github.com/nats-io/nats.go"

	"github.com/parley-hub/parley/server/config"
)

// clusterProof returns the options by which a node and the NATS servers authenticate
// each other. A file that cannot be used is refused here, where its setting is known.
func clusterProof(cfg config.Cluster) (opts []nats.Option, err error) {
	if cfg.Creds != "" {
		if _, err := os.ReadFile(cfg.Creds); err != nil {
			return nil, fmt.Errorf("cluster.creds: %w", err)
		}
		opts = append(opts, nats.UserCredentials(cfg.Creds))
	}
	if cfg.CA != "" {
		text, err := os.ReadFile(cfg.CA)
		if err == nil && !x509.NewCertPool().AppendCertsFromPEM(text) {
			err = fmt.Errorf("%s has no certificate", cfg.CA)
		}
		if err != nil {
			return nil, fmt.Errorf("cluster.tls.ca: %w", err)
		}
		opts = append(opts, nats.RootCAs(cfg.CA))
	}
	if cfg.Cert != "" || cfg.Key != "" {
		if _, err := tls.LoadX509KeyPair(cfg.Cert, cfg.Key); err != nil {
			return nil, fmt.Errorf("cluster.tls.cert and cluster.tls.key: %w", err)
		}
		opts = append(opts, nats.ClientCert(cfg.Cert, cfg.Key))
	}
	return opts, nil
}

// connectRemedy names the setting that is wrong if the servers refuse a node, or it
// does not trust them.
func connectRemedy(err error) string {
	var unknown x509.UnknownAuthorityError
	var name x509.HostnameError
	var remote *net.OpError
	switch {
	case errors.As(err, &unknown):
		return "; set cluster.tls.ca to the certificate that signed theirs"
	case errors.As(err, &name):
		return "; name the servers in cluster.url as their certificates do"
	case errors.As(err, &remote) && remote.Op == "remote error", errors.Is(err, nats.ErrTLS): // during the TLS handshake, or after it
		return "; the servers do not take this node's certificate: set cluster.tls.cert and cluster.tls.key"
	case errors.Is(err, nats.ErrSecureConnWanted):
		return "; the servers have no TLS: use nats:// in cluster.url, without cluster.tls.*"
	case errors.Is(err, nats.ErrAuthorization), errors.Is(err, nats.ErrAuthExpired), errors.Is(err, nats.ErrAuthRevoked):
		return "; the servers do not know this node's user: set cluster.creds, or a user or token in cluster.url"
	}
	return ""
}
