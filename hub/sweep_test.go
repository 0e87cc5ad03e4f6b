package hub_test

import (
	"testing"
	"time"

	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/conformance/spec"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/hub"
)

func TestTTL(t *testing.T) {
	t.Parallel()
	holds(t, "ag2-hub#93: the sweep expires it", hub.Options{}, func(t *spec.T, r *rig) {
		a, b := r.agent("alice"), r.agent("bob")
		ch := r.open("conversation", a, b)
		r.pass(2*time.Hour - time.Second)
		t.Equal(r.channel(ch).State, channel.Active)
		r.pass(31 * time.Second)
		m := r.channel(ch)
		t.Equal(m.State, channel.Expired)
		t.Equal(m.CloseReason, "ttl_expired")
		t.Equal(r.types(ch), []string{
			envelope.TypeInvite, envelope.TypeInviteAck, envelope.TypeOpened, envelope.TypeExpired, envelope.TypeClosed,
		})
	})
}
