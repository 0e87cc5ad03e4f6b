package agh_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-hub/parley/dialect/agh"
	"github.com/parley-hub/parley/server/config"
)

func TestDefaultsOfTheSection(t *testing.T) {
	t.Parallel()
	want := &agh.Settings{
		Enabled: true, GreetInterval: 30 * time.Second, ReplayAge: 300 * time.Second, QueueDepth: 100, DefaultChannel: "default", SecretScan: "outbound",
		Bridge: agh.BridgeSettings{Accept: "present"},
		Audit:  agh.AuditSettings{Rejects: 10},
		Hooks:  agh.HookSettings{Timeout: 10 * time.Second, Queue: 1000},
		Limits: agh.LimitSettings{
			Peers: 1000, Work: 10_000, Remotes: 10_000, Outbox: 10_000, SubscriptionRate: 5000, SenderRate: 1000, Streams: 1000,
		},
	}
	cfg := config.Core.With(agh.Section.Keys()).Default()
	if diff := cmp.Diff(want, agh.Section.Of(&cfg)); diff != "" {
		t.Errorf("defaults (-want +got):\n%s", diff)
	}
}
