package agh

import (
	"context"
	"errors"

	"github.com/parley-hub/parley/dialect/agh/wire"
	"github.com/parley-hub/parley/server/dialect"
)

var _ dialect.Dialect = (*Server)(nil)

// Name is the section of the configuration.
func (s *Server) Name() string { return wire.Dialect }

// Ready is an error once the runtime has ended.
func (s *Server) Ready(context.Context) error {
	if s.ctx.Err() != nil {
		return errors.New("the AGH network is closed")
	}
	return nil
}

// Banner returns the address of the HTTP interface.
func (s *Server) Banner(baseURL string) dialect.Banner {
	return dialect.Banner{Label: "agh", URL: baseURL + base}
}
