package logsample_test

import (
	"bytes"
	"log/slog"
	"testing"
	"time"

	"github.com/parley-hub/parley/internal/logsample"
)

func TestOneLineASecond(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	log := slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}}))
	var l logsample.Limiter // of a log that leaves debug out
	at := time.Unix(1_900_000_000, 0)
	for i, after := range []time.Duration{0, 1, time.Second - 1, time.Second, time.Second + 1, 3 * time.Second} {
		l.Warn(log, at.Add(after), "refused", "n", i)
	}
	want := "level=WARN msg=refused n=0\nlevel=WARN msg=refused n=3 left_out=2\nlevel=WARN msg=refused n=5 left_out=1\n"
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
}

func TestDebugLeavesNothingOut(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	log := slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug}))
	var l logsample.Limiter
	for range 3 {
		l.Warn(log, time.Unix(1_900_000_000, 0), "refused")
	}
	if warned, told := bytes.Count(out.Bytes(), []byte("level=WARN")), bytes.Count(out.Bytes(), []byte("level=DEBUG")); warned != 1 || told != 2 {
		t.Errorf("%s", out.String())
	}
}
