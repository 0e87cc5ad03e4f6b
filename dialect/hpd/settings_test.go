package hpd_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-hub/parley/dialect/hpd"
	"github.com/parley-hub/parley/server/config"
)

func TestDefaultsOfTheSection(t *testing.T) {
	t.Parallel()
	want := &hpd.Settings{
		User: "user", HasChildren: "400", InterruptGrace: 10 * time.Second, ProducerGrace: time.Minute,
		Persist: hpd.PersistSettings{AudioTranscripts: "off"},
		Limits: hpd.LimitSettings{
			Sessions: 10_000, Streams: 10_000, Behind: 1024, BehindBytes: 8 << 20, Upload: 10 * time.Minute,
			Connections: 10_000, FrameBytes: 2 << 20, QueueBytes: 8 << 20,
			Runs: 10_000, Work: 1024, Keys: 4096, Recent: 8192, Remembered: 100_000, Requests: 1000,
		},
	}
	cfg := config.Core.With(hpd.Section.Keys()).Default()
	if diff := cmp.Diff(want, hpd.Section.Of(&cfg)); diff != "" {
		t.Errorf("defaults (-want +got):\n%s", diff)
	}
}
