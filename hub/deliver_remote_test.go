package hub_test

import (
	"time"

	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/hub"
	"github.com/parley-hub/parley/identity"
)

func frozen() time.Time { return time.Date(2026, 3, 9, 10, 0, 0, 0, time.UTC) }

func remote(scheme string) func(*hub.Registration) {
	return func(reg *hub.Registration) {
		reg.Passport.Kind, reg.Passport.Auth.Scheme = identity.RemoteAgent, scheme
	}
}

type carrier struct {
	carried []string
	err     error
}

func (c *carrier) Forward(to *identity.Passport, e *envelope.Envelope) error {
	if c.err == nil && e.Type == envelope.TypeText {
		c.carried = append(c.carried, to.AgentID+" "+string(e.Data))
	}
	return c.err
}

type thrower struct{ hub.NoopListener }

func (thrower) EnvelopePosted(*envelope.Envelope, *channel.Metadata) { panic("no") }
func (thrower) ChannelEvent(hub.ChannelEvent)                        { panic("no") }
func (thrower) AgentEvent(hub.AgentEvent)                            { panic("no") }
