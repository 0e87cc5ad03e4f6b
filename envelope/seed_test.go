package envelope_test

import (
	"testing"

	"github.com/parley-hub/parley/conformance/spec"
	"github.com/parley-hub/parley/envelope"
)

func TestSeedTypes(t *testing.T) {
	t.Parallel()
	spec.Check(t, "seed-000#21: a named constant exists for every event type", func(t *spec.T) {
		t.Equal(map[string]string{
			"EV_TEXT": envelope.TypeText, "EV_PACKET": envelope.TypePacket,
			"EV_CHANNEL_INVITE": envelope.TypeInvite, "EV_CHANNEL_INVITE_ACK": envelope.TypeInviteAck,
			"EV_CHANNEL_INVITE_REJECT": envelope.TypeInviteReject, "EV_CHANNEL_OPENED": envelope.TypeOpened,
			"EV_CHANNEL_CLOSED": envelope.TypeClosed, "EV_CHANNEL_EXPIRED": envelope.TypeExpired,
			"EV_EXPECTATION_VIOLATED": envelope.TypeExpectationViolated,
			"started":                 envelope.TypeTaskStarted, "progress": envelope.TypeTaskProgress,
			"completed": envelope.TypeTaskCompleted, "failed": envelope.TypeTaskFailed, "expired": envelope.TypeTaskExpired,
		}, map[string]string{
			"EV_TEXT": "ag2.msg.text", "EV_PACKET": "ag2.packet",
			"EV_CHANNEL_INVITE": "ag2.channel.invite", "EV_CHANNEL_INVITE_ACK": "ag2.channel.invite.ack",
			"EV_CHANNEL_INVITE_REJECT": "ag2.channel.invite.reject", "EV_CHANNEL_OPENED": "ag2.channel.opened",
			"EV_CHANNEL_CLOSED": "ag2.channel.closed", "EV_CHANNEL_EXPIRED": "ag2.channel.expired",
			"EV_EXPECTATION_VIOLATED": "ag2.channel.expectation_violated",
			"started":                 "ag2.task.started", "progress": "ag2.task.progress",
			"completed": "ag2.task.completed", "failed": "ag2.task.failed", "expired": "ag2.task.expired",
		})
	})
	spec.Check(t, "seed-002#28: the old session names are read as channel events", func(t *spec.T) {
		for _, event := range []string{"invite", "invite.ack", "invite.reject", "opened", "closed", "expired"} {
			t.Equal(envelope.Canonical("ag2.session."+event), "ag2.channel."+event)
		}
	})
}
