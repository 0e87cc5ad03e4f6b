package wire

import (
	"bytes"
	"strconv"
)

// plainInteger reads a number that is written as a plain integer.
func plainInteger(number []byte) (int64, bool) {
	n, err := strconv.ParseInt(string(number), 10, 64)
	return n, err == nil
}

// integerValue reads a number whose value is an integer, however it is
// written: 7, 7.0 and 70e-1 are the same. It does not compute powers, so that
// 1e999999999 costs nothing.
func integerValue(number []byte) (int64, bool) {
	if n, ok := plainInteger(number); ok {
		return n, true
	}
	sign := ""
	if number[0] == '-' {
		sign, number = "-", number[1:]
	}
	mantissa, exponent := number, 0
	if e := bytes.IndexAny(number, "eE"); e >= 0 {
		n, err := strconv.Atoi(string(number[e+1:]))
		if err != nil {
			n = 1 << 30 // out of range in one direction or the other; zero stays zero
			if number[e+1] == '-' {
				n = -n
			}
		}
		mantissa, exponent = number[:e], n
	}
	whole, fraction, _ := bytes.Cut(mantissa, []byte("."))
	digits := append(bytes.Clone(whole), fraction...)
	point := len(whole) + exponent
	digits = bytes.TrimRight(digits, "0")
	trimmed := bytes.TrimLeft(digits, "0")
	point -= len(digits) - len(trimmed)
	if len(trimmed) == 0 {
		return 0, true
	}
	if point < len(trimmed) || point > 19 {
		return 0, false
	}
	padded := append(trimmed, bytes.Repeat([]byte("0"), point-len(trimmed))...)
	n, err := strconv.ParseInt(sign+string(padded), 10, 64)
	return n, err == nil
}
