package ag2

import (
	"context"
	"errors"
	"strings"

	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/hub"
	"github.com/parley-hub/parley/server/dialect"
)

var _ dialect.Dialect = (*Server)(nil)

// Name returns the name of the dialect's section in the configuration.
func (s *Server) Name() string { return dialectName }

// dialectName is the name of this dialect in settings, metrics and the hub.
const dialectName = "ag2"

// Mount claims the WebSockets of every path that no other dialect claims, because
// AG2's clients name no path.
func (s *Server) Mount() dialect.Mount { return dialect.Mount{Upgrade: s} }

// Start does nothing: the server waits for connections.
func (s *Server) Start(context.Context) error { return nil }

// Drain closes every connection, and waits until none is left and their work has
// ended. If the context ends first, the remaining work is cancelled.
func (s *Server) Drain(ctx context.Context) error { return s.conns.Close(ctx) }

// Close does the same as Drain, without a time limit.
func (s *Server) Close() error { return s.conns.Close(context.Background()) }

// Ready returns an error once the server drains.
func (s *Server) Ready(context.Context) error {
	if s.conns.Context().Err() != nil {
		return errors.New("AG2 connections are being closed")
	}
	return nil
}

// Banner returns the address to which clients connect.
func (s *Server) Banner(base string) dialect.Banner {
	b := dialect.Banner{Label: "agents", URL: "ws" + strings.TrimPrefix(base, "http")}
	if s.cfg.TrustClients {
		b.Warnings = append(b.Warnings, "ag2.trust_clients lets every connection act for every agent")
	}
	return b
}

// CheckEnvelope returns an error if an envelope of another surface is not
// acceptable to AG2's clients.
func (s *Server) CheckEnvelope(e *envelope.Envelope) error { return CheckEnvelope(e) }

// CheckOpening returns an error if a channel of another surface could not be sent
// to AG2's clients.
func (s *Server) CheckOpening(o hub.Opening) error { return CheckOpening(o) }
