package screen

import (
	"fmt"
	"time"
)

// Span returns a time in its largest unit.
func Span(d time.Duration) string {
	switch d = max(d, 0); {
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", int(d.Hours()))
	}
	return fmt.Sprintf("%dd", int(d.Hours()/24))
}

// Ago returns how long something is past.
func Ago(now, at time.Time) string {
	if at.IsZero() {
		return "-"
	}
	return Span(now.Sub(at)) + " ago"
}

// Due returns when something is due, from now.
func Due(now, at time.Time) string {
	switch {
	case at.IsZero():
		return "-"
	case now.After(at):
		return "overdue " + Span(now.Sub(at))
	}
	return "in " + Span(at.Sub(now))
}

// Size returns a number of bytes in its largest unit.
func Size(bytes float64) string {
	units := []string{"B", "KiB", "MiB", "GiB", "TiB"}
	unit := 0
	for bytes >= 1024 && unit < len(units)-1 {
		bytes, unit = bytes/1024, unit+1
	}
	if unit == 0 || bytes >= 100 {
		return fmt.Sprintf("%.0f %s", bytes, units[unit])
	}
	return fmt.Sprintf("%.1f %s", bytes, units[unit])
}
