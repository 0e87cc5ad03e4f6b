package hub

import "github.com/parley-hub/parley/envelope"

type envelopeSpan struct{}

func (h *Hub) traceEnvelope(*envelope.Envelope, bool) *envelopeSpan { return nil }

func (s *envelopeSpan) end(failures int) {}
