package graph

import (
	"cmp"
	"fmt"
	"math/big"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// Number is a JSON number by its text, so that no digit is ever lost. The
// empty text is 0.
type Number string

// MarshalJSONTo writes the number as it is.
func (n Number) MarshalJSONTo(enc *jsontext.Encoder) error {
	if !validNumber(n.text()) {
		return fmt.Errorf("graph: %q is not a JSON number", string(n))
	}
	return enc.WriteValue(jsontext.Value(n.text()))
}

// UnmarshalJSONFrom reads a number and nothing else.
func (n *Number) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	v, err := dec.ReadValue()
	if err != nil {
		return err
	}
	if v.Kind() != jsontext.KindNumber {
		return &Error{Message: "must be a number, not " + kindOf(v)}
	}
	*n = Number(v)
	return nil
}

func (n Number) text() string {
	return cmp.Or(string(n), "0")
}

// isNumber reports whether a JSON value is a number, by its first byte.
func isNumber(first byte) bool { return first == '-' || first >= '0' && first <= '9' }

// validNumber reports whether a text is a JSON number and nothing else.
func validNumber(text string) bool {
	return text != "" && isNumber(text[0]) && text[len(text)-1] > ' ' && jsontext.Value(text).IsValid()
}

// compareShort compares two whole numbers of at most 64 bits, as most are.
func compareShort(a, b string) (c int, ok bool) {
	x, err := strconv.ParseInt(a, 10, 64)
	if err != nil {
		return 0, false
	}
	y, err := strconv.ParseInt(b, 10, 64)
	return cmp.Compare(x, y), err == nil
}

// decimal is sign × 0.digits × 10^point, with no zero at either end of the
// digits; zero has sign 0 and point 0. In this form, text order is value order.
type decimal struct {
	sign   int
	digits string
	point  big.Int
}

// compare compares by value, exactly.
func (d *decimal) compare(other decimal) int {
	if d.sign != other.sign {
		return cmp.Compare(d.sign, other.sign)
	}
	c := d.point.Cmp(&other.point)
	if c == 0 {
		c = strings.Compare(d.digits, other.digits)
	}
	return c * d.sign
}

// parseDecimal reads a JSON number of at most MaxNumber bytes: the cost of a
// long exponent grows faster than its length.
func parseDecimal(text string) decimal {
	d := decimal{sign: 1}
	if rest, ok := strings.CutPrefix(text, "-"); ok {
		d.sign, text = -1, rest
	}
	mantissa, exponent := text, ""
	if i := strings.IndexAny(text, "eE"); i >= 0 {
		mantissa, exponent = text[:i], text[i+1:]
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	digits := whole + fraction
	significant := strings.TrimLeft(digits, "0")
	d.digits = strings.TrimRight(significant, "0")
	if d.digits == "" {
		return decimal{}
	}
	if exponent != "" {
		d.point.SetString(strings.TrimPrefix(exponent, "+"), 10)
	}
	leading := len(digits) - len(significant)
	d.point.Add(&d.point, big.NewInt(int64(len(whole)-leading)))
	return d
}
