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

// Name is the section of the configuration.
func (s *Server) Name() string { return dialectName }

// dialectName is how this dialect is called in settings, metrics and the hub.
const dialectName = "ag2"

// Mount takes the WebSockets of every path that nobody else owns: AG2's clients
// name none.
func (s *Server) Mount() dialect.Mount { return dialect.Mount{Upgrade: s} }

// Start has nothing to do: the server waits for connections.
func (s *Server) Start(context.Context) error { return nil }

// Drain tells every connection to go, and waits until none is left and nothing
// works for one. When the context ends first, what still runs is cancelled.
func (s *Server) Drain(ctx context.Context) error { return s.conns.Close(ctx) }

// Close ends as Drain does, however long it takes.
func (s *Server) Close() error { return s.conns.Close(context.Background()) }

// Ready is an error once the server drains.
func (s *Server) Ready(context.Context) error {
	if s.conns.Context().Err() != nil {
		return errors.New("AG2 connections are being closed")
	}
	return nil
}

// Banner tells where clients connect.
func (s *Server) Banner(base string) dialect.Banner {
	b := dialect.Banner{Label: "agents", URL: "ws" + strings.TrimPrefix(base, "http")}
	if s.cfg.TrustClients {
		b.Warnings = append(b.Warnings, "ag2.trust_clients lets every connection act for every agent")
	}
	return b
}

// CheckEnvelope refuses an envelope of another surface that AG2's clients could
// not take.
func (s *Server) CheckEnvelope(e *envelope.Envelope) error { return CheckEnvelope(e) }

// CheckOpening refuses a channel of another surface of which AG2's clients
// could not be told.
func (s *Server) CheckOpening(o hub.Opening) error { return CheckOpening(o) }
