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

// CanListen finds out what would keep New from listening as it is told to, before
// anything is made for it: the address, what exposes an open hub, given how many
// keys there are, and the certificate. Whether the port is free only New knows.
func CanListen(cfg config.Config, keys int) error {
	if _, err := address(cfg, keys); err != nil {
		return err
	}
	if cfg.TLS.Cert == "" {
		return nil
	}
	_, err := loadCertificate(cfg.TLS.Cert, cfg.TLS.Key, slog.New(slog.DiscardHandler))
	return err
}

// address is where to listen, unless that would expose an open hub.
func address(cfg config.Config, keys int) (*net.TCPAddr, error) {
	address, err := net.ResolveTCPAddr("tcp", cfg.HTTP.Listen)
	if err != nil {
		return nil, fmt.Errorf("http.listen: %q is not an address to listen on (%w); it looks like 127.0.0.1:7440", cfg.HTTP.Listen, err)
	}
	return address, access.Exposure{
		Address:     cfg.HTTP.Listen,
		Data:        cfg.Data.Dir,
		Loopback:    address.IP.IsLoopback(),
		Open:        cfg.Exposing,
		Keys:        keys,
		TLS:         cfg.TLS.Cert != "",
		BehindProxy: cfg.HTTP.BehindProxy,
		Insecure:    cfg.HTTP.Insecure,
	}.Check()
}

// listen binds the configured address.
func listen(ctx context.Context, cfg config.Config, keys int, m *metrics, log *slog.Logger) (*listener, error) {
	address, err := address(cfg, keys)
	if err != nil {
		return nil, err
	}
	bound, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address.String())
	if err != nil {
		return nil, fmt.Errorf("cannot listen on %s: %w; choose another address with --listen (port 0 takes a free one)", cfg.HTTP.Listen, err)
	}
	return newListener(bound, cfg, m, log), nil
}

// connections is how many of the configured ones the limit of open files leaves
// room for, besides the store and the operator's reserve.
func connections(configured int) int {
	limit, ok := openfiles.Limit()
	if !ok {
		return configured
	}
	return max(min(configured, openfiles.Connections(limit)-operatorReserve), 1)
}
