package envelope

import (
	"fmt"
	"time"
)

const (
	zuluLayout = "2006-01-02T15:04:05.000000Z"
	ag2Layout  = "2006-01-02T15:04:05.000000+00:00"
)

// FormatTime writes an instant as our own surfaces show it: UTC, six digits, Z.
func FormatTime(t time.Time) string { return t.UTC().Format(zuluLayout) }

// FormatTimeAG2 writes an instant as AG2's wire does: six digits and +00:00,
// which every supported Python reads.
func FormatTimeAG2(t time.Time) string { return t.UTC().Format(ag2Layout) }

// ParseTime reads RFC 3339 with or without a fraction, with Z or an offset;
// without either it is UTC. A blank may replace the T, as in what Python
// makes of a datetime.
func ParseTime(s string) (time.Time, error) {
	for _, layout := range []string{
		time.RFC3339Nano, "2006-01-02T15:04:05.999999999",
		"2006-01-02 15:04:05.999999999Z07:00", "2006-01-02 15:04:05.999999999",
	} {
		if t, err := time.Parse(layout, s); err == nil {
			return t.UTC(), nil
		}
	}
	return time.Time{}, fmt.Errorf("envelope: %q is not a timestamp; write it like %s", s, "2026-03-09T10:15:42.008113Z")
}
