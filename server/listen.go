package server

import (
	"context"
	"fmt"
	"log/slog"
	"net"

	"github.com/parley-hub/parley/internal/openfiles"
	"github.com/parley-hub/parley/server/access"
	"github.com/parley-hub/parley/server/config"
)

// CanListen returns the error with which New would refuse to listen, before anything
// is created: a wrong address, an open hub that would be exposed, given the number
// of keys, or a bad certificate. It does not check whether the port is free.
func CanListen(cfg config.Config, keys int) error {
	if err := mayListen(cfg, keys); err != nil {
		return err
	}
	if cfg.TLS.Cert == "" {
		return nil
	}
	_, err := loadCertificate(cfg.TLS.Cert, cfg.TLS.Key, slog.New(slog.DiscardHandler))
	return err
}

// mayListen refuses a wrong address, and one that would expose an open hub.
func mayListen(cfg config.Config, keys int) error {
	address, err := net.ResolveTCPAddr("tcp", cfg.HTTP.Listen)
	if err != nil {
		return fmt.Errorf("http.listen: %q is not an address to listen on (%w); it looks like 127.0.0.1:7440", cfg.HTTP.Listen, err)
	}
	return access.Exposure{
		Address:     cfg.HTTP.Listen,
		Data:        cfg.Data.Dir,
		Loopback:    address.IP.IsLoopback(),
		Open:        cfg.Exposing,
		Cluster:     len(cfg.Cluster.URL) > 0,
		Keys:        keys,
		TLS:         cfg.TLS.Cert != "",
		BehindProxy: cfg.HTTP.BehindProxy,
		Insecure:    cfg.HTTP.Insecure,
	}.Check()
}

// listen binds the configured address.
func listen(ctx context.Context, cfg config.Config, deps Deps, m *metrics) (*listener, error) {
	if err := mayListen(cfg, deps.Keys.Len()); err != nil {
		return nil, err
	}
	if deps.Listener != nil {
		return newListener(deps.Listener, cfg, m, deps.Log), nil
	}
	bound, err := Bind(ctx, cfg)
	if err != nil {
		return nil, err
	}
	return newListener(bound, cfg, m, deps.Log), nil
}

// Bind binds the configured address without checking what that exposes.
func Bind(ctx context.Context, cfg config.Config) (net.Listener, error) {
	address, err := net.ResolveTCPAddr("tcp", cfg.HTTP.Listen)
	if err != nil {
		return nil, fmt.Errorf("http.listen: %q is not an address to listen on (%w); it looks like 127.0.0.1:7440", cfg.HTTP.Listen, err)
	}
	bound, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address.String())
	if err != nil {
		return nil, fmt.Errorf("cannot listen on %s: %w; choose another address with --listen (port 0 takes a free one)", cfg.HTTP.Listen, err)
	}
	return bound, nil
}

// connections returns how many of the configured ones the limit of open files
// leaves room for, besides the store and the operator's reserve.
func connections(configured int) int {
	limit, ok := openfiles.Limit()
	if !ok {
		return configured
	}
	return max(min(configured, openfiles.Connections(limit)-operatorReserve), 1)
}
