package identity

import (
	"errors"
	"math"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-hub/parley/fault"
)

// ParseSeconds reads a duration as text: an optional sign, digits and an
// optional unit s, m, h or d. No unit means seconds; no text means zero.
func ParseSeconds(text string) (int64, error) {
	if text == "" {
		return 0, nil
	}
	digits, unit := text, int64(1)
	switch text[len(text)-1] {
	case 's':
		digits = text[:len(text)-1]
	case 'm':
		digits, unit = text[:len(text)-1], 60
	case 'h':
		digits, unit = text[:len(text)-1], 3600
	case 'd':
		digits, unit = text[:len(text)-1], 86400
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || n > math.MaxInt64/unit || n < math.MinInt64/unit {
		return 0, fault.New(fault.Invalid, "duration %.40q is invalid; write digits and s, m, h or d, like \"15m\", or seconds", text)
	}
	return n * unit, nil
}

// TTL is a duration exactly as it was written: text with a unit, or a whole
// number of seconds. Its zero value is the empty text, which is no expiry.
type TTL struct {
	text   string
	number bool
}

// TextTTL returns a duration written as text. Seconds returns an error if the
// text is not a duration.
func TextTTL(text string) TTL { return TTL{text: text} }

// SecondsTTL returns a duration written as a number.
func SecondsTTL(n int64) TTL { return TTL{text: strconv.FormatInt(n, 10), number: true} }

// Seconds reads the duration.
func (t TTL) Seconds() (int64, error) {
	return ParseSeconds(t.text)
}

func (t TTL) String() string { return t.text }

// MarshalJSONTo writes it as it was given.
func (t TTL) MarshalJSONTo(enc *jsontext.Encoder) error {
	if t.number {
		return enc.WriteValue(jsontext.Value(t.text))
	}
	return enc.WriteToken(jsontext.String(t.text))
}

// UnmarshalJSONFrom reads text or a whole number; Seconds checks later whether
// the text is a duration. Null is the empty text.
func (t *TTL) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	switch kind := dec.PeekKind(); kind {
	case '"', 'n':
		*t = TTL{}
		return json.UnmarshalDecode(dec, &t.text)
	case '0':
		var n int64
		if err := json.UnmarshalDecode(dec, &n); err != nil {
			return err
		}
		*t = SecondsTTL(n)
		return nil
	case 0:
		return dec.SkipValue() // fails with the syntax error
	default:
		return errors.New("a duration is text or a whole number of seconds, not a " + KindName(kind))
	}
}

// latest is the last instant that every record can hold.
var latest = time.Date(2261, 12, 31, 0, 0, 0, 0, time.UTC)

// Expiry returns the time at which something made now ends after that many
// seconds; zero or less is never.
func Expiry(now time.Time, seconds int64) (at time.Time, err error) {
	if seconds <= 0 {
		return time.Time{}, nil
	}
	if seconds > int64(latest.Sub(now)/time.Second) {
		return time.Time{}, fault.New(fault.Invalid, "a duration of %d s ends too far away; 0 never ends", seconds)
	}
	return now.Add(time.Duration(seconds) * time.Second), nil
}
