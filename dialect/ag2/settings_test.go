package ag2_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/parley-hub/parley/dialect/ag2"
	"github.com/parley-hub/parley/server/config"
)

var settings = config.Core.With(ag2.Section.Keys())

func TestDefaultsOfTheSection(t *testing.T) {
	t.Parallel()
	want := &ag2.Settings{
		AllowNone: ag2.NoneFromLoopback, MirrorTasks: "ends", ReadWAL: "filtered", Expectations: "manifest",
		Limits: ag2.LimitSettings{
			Connections: 20_000, FrameBytes: 1 << 20, QueueBytes: 8 << 20, Requests: 1024, Openings: 256, Identities: 10_000, Foreign: 1000,
			Handshake: 10 * time.Second, Message: 30 * time.Second, Ping: 20 * time.Second, Pong: 20 * time.Second, Write: 30 * time.Second,
		},
	}
	cfg := settings.Default()
	if diff := cmp.Diff(want, ag2.Section.Of(&cfg)); diff != "" {
		t.Errorf("defaults (-want +got):\n%s", diff)
	}
	if cfg.Exposing != nil {
		t.Errorf("by default these let everyone in: %v", cfg.Exposing)
	}
}

func TestTheSectionIsReadFromEverySource(t *testing.T) {
	t.Parallel()
	got, err := settings.Load(config.Sources{
		Environ: []string{"PARLEY_AG2_ALLOW_NONE=always"},
		Flags:   map[string]string{"ag2.limits.write": "7s"}, Named: map[string]string{"ag2.limits.write": "--set"},
	})
	if err != nil {
		t.Fatal(err)
	}
	section := ag2.Section.Of(&got.Config)
	if section.AllowNone != ag2.NoneAlways || section.Limits.Write != 7*time.Second {
		t.Errorf("%+v", section)
	}
	want := []string{"ag2.allow_none is always: set it to loopback or never"}
	if diff := cmp.Diff(want, got.Exposing); diff != "" {
		t.Errorf("what exposes the hub (-want +got):\n%s", diff)
	}
	other := settings.Default()
	if ag2.Section.Of(&other).AllowNone != ag2.NoneFromLoopback {
		t.Error("two configurations share the section")
	}
}
