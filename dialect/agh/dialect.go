package agh

import (
	"context"
	"errors"

	"github.com/prometheus/client_golang/prometheus"

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

// Banner tells where the HTTP interface is.
func (s *Server) Banner(baseURL string) dialect.Banner {
	return dialect.Banner{Label: "agh", URL: baseURL + base}
}

// Describe names the figures.
func (s *Server) Describe(to chan<- *prometheus.Desc) { to <- messagesDesc }

var messagesDesc = prometheus.NewDesc("parley_agh_messages_total", "AGH envelopes by kind and by what became of them.", []string{"kind", "direction"}, nil)

// Collect tells them.
func (s *Server) Collect(to chan<- prometheus.Metric) {
	for i := range s.counts.kinds {
		kind := "unknown"
		if all := wire.Kinds(); i < len(all) {
			kind = string(all[i])
		}
		for _, d := range []direction{sent, received, rejected, delivered} {
			to <- prometheus.MustNewConstMetric(messagesDesc, prometheus.CounterValue, float64(s.counts.kinds[i].of(d).Load()), kind, string(d))
		}
	}
}
