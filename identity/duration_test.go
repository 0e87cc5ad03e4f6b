package identity_test

import (
	"math"
	"testing"
	"time"

	"github.com/parley-hub/parley/conformance/spec"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/identity"
)

func TestDurations(t *testing.T) {
	t.Parallel()
	good := map[string]int64{
		"30s": 30, "15m": 900, "2h": 7200, "4h": 14400, "1d": 86400, "0s": 0, "": 0, "60": 60,
		"-5m": -300, "+10": 10, "007s": 7,
		"106751991167300d": 9223372036854720000, "-106751991167300d": -9223372036854720000,
	}
	for text, want := range good {
		spec.Check(t, "ag2-hub#54: "+text+" is valid", func(t *spec.T) {
			got, err := identity.ParseSeconds(text)
			t.NoError(err)
			t.Equal(got, want)
		})
	}
	for _, text := range []string{
		"abc", "5x", "10y", "fast", "1.5h", "2H", "h", "-", "1 h", " 1h", "1h ", "1_000", "0x10", "1h30m", "٣",
		"9223372036854775808", "9223372036854775807d", "-9223372036854775807m",
		"106751991167301d", "-106751991167301d",
	} {
		spec.Check(t, "ag2-hub#54: "+text+" is invalid", func(t *spec.T) {
			_, err := identity.ParseSeconds(text)
			t.Equal(fault.CodeOf(err), fault.Invalid)
			t.ErrorContains(err, "duration")
		})
	}
	for text, want := range map[string]int64{"0": 0, "45": 45, "-1": -1} {
		spec.Check(t, "ag2-hub#54: the integer "+text+" is seconds", func(t *spec.T) {
			var ttl identity.TTL
			t.NoError(identity.Unmarshal("ttl", []byte(text), &ttl))
			got, err := ttl.Seconds()
			t.NoError(err)
			t.Equal(got, want)
			written, err := identity.Marshal(ttl)
			t.NoError(err)
			t.Equal(string(written), text)
		})
	}
}

func TestTTLRefusesOtherJSON(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"1.5", "1e3", "true", "[]", "{}", "99999999999999999999", "tru"} {
		var ttl identity.TTL
		if err := identity.Unmarshal("ttl", []byte(text), &ttl); fault.CodeOf(err) != fault.Invalid {
			t.Errorf("%s: got %v, want an invalid refusal", text, err)
		}
	}
}

func TestExpiry(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 9, 10, 0, 0, 0, time.UTC)
	last := time.Date(2261, 12, 31, 0, 0, 0, 0, time.UTC)
	for _, tt := range []struct {
		seconds int64
		want    time.Time
	}{
		{60, now.Add(time.Minute)},
		{0, time.Time{}},
		{-5, time.Time{}},
		{int64(last.Sub(now) / time.Second), last},
	} {
		if got, err := identity.Expiry(now, tt.seconds); err != nil || !got.Equal(tt.want) {
			t.Errorf("Expiry(%d) = %v, %v; want %v", tt.seconds, got, err, tt.want)
		}
	}
	for _, seconds := range []int64{math.MaxInt64, 1 << 40, int64(last.Sub(now)/time.Second) + 1} {
		if _, err := identity.Expiry(now, seconds); fault.CodeOf(err) != fault.Invalid {
			t.Errorf("Expiry(%d): got %v, want an invalid refusal", seconds, err)
		}
	}
}
