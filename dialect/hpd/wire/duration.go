package wire

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/parley-hub/parley/fault"
)

// Duration is written as [-][d.]hh:mm:ss[.fffffff], in steps of 100 ns.
type Duration time.Duration

const (
	day  = 24 * time.Hour
	tick = 100 * time.Nanosecond
)

func (d Duration) String() string {
	rest, sign := time.Duration(d), ""
	if rest < 0 {
		sign = "-"
		if rest = -rest; rest < 0 {
			rest = 1<<63 - 1 // the only value without a positive counterpart
		}
	}
	var b strings.Builder
	b.WriteString(sign)
	if days := rest / day; days > 0 {
		fmt.Fprintf(&b, "%d.", days)
	}
	fmt.Fprintf(&b, "%02d:%02d:%02d", rest%day/time.Hour, rest%time.Hour/time.Minute, rest%time.Minute/time.Second)
	if ticks := rest % time.Second / tick; ticks > 0 {
		fmt.Fprintf(&b, ".%07d", ticks)
	}
	return b.String()
}

// MarshalText writes the form of String.
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalJSON reads the same form.
func (d *Duration) UnmarshalJSON(data []byte) error {
	var text string
	if err := json.Unmarshal(data, &text); err != nil {
		return err
	}
	parsed, err := ParseDuration(text)
	if err == nil {
		*d = parsed
	}
	return err
}

// ParseDuration reads [-][d.]hh:mm:ss[.fffffff].
func ParseDuration(text string) (Duration, error) {
	wrong := fault.New(fault.Invalid, "%.40q is not a duration; write [-][d.]hh:mm:ss[.fffffff], such as 00:00:02.5000000", text)
	rest, negative := strings.CutPrefix(text, "-")
	parts := strings.Split(rest, ":")
	if len(parts) != 3 {
		return 0, wrong
	}
	days, hours, ok := strings.Cut(parts[0], ".")
	if !ok {
		days, hours = "0", parts[0]
	}
	seconds, fraction, hasFraction := strings.Cut(parts[2], ".")
	if hasFraction && (fraction == "" || len(fraction) > 7) {
		return 0, wrong
	}
	total := int64(0)
	for _, unit := range []struct {
		text string
		size time.Duration
		max  int64
	}{
		{days, day, 106_751},
		{hours, time.Hour, 23},
		{parts[1], time.Minute, 59},
		{seconds, time.Second, 59},
		{(fraction + "0000000")[:7], tick, 9_999_999},
	} {
		n, err := strconv.ParseUint(unit.text, 10, 32)
		if err != nil || int64(n) > unit.max {
			return 0, wrong
		}
		total += int64(n) * int64(unit.size)
	}
	if total < 0 {
		return 0, wrong // past 292 years
	}
	if negative {
		total = -total
	}
	return Duration(total), nil
}
