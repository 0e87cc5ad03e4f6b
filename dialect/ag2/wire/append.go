package wire

import (
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-hub/parley/envelope"
)

// Everything is written by appending, so that raw JSON is written byte for byte as
// it was read.

// appendText writes a string. Invalid UTF-8 becomes U+FFFD, because the reader of
// an invalid frame would lose its connection.
func appendText(buf []byte, s string) []byte {
	if needsNoEscape(s) {
		buf = append(buf, '"')
		buf = append(buf, s...)
		return append(buf, '"')
	}
	quoted, _ := jsontext.AppendQuote(buf, s)
	return quoted
}

// needsNoEscape reports whether a string needs no escape.
func needsNoEscape(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c == '"' || c == '\\' || c >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// appendOptional writes a string, or null if it is empty.
func appendOptional(buf []byte, s string) []byte {
	if s == "" {
		return append(buf, "null"...)
	}
	return appendText(buf, s)
}

func appendTexts(buf []byte, list []string) []byte {
	buf = append(buf, '[')
	for i, s := range list {
		if i > 0 {
			buf = append(buf, ',')
		}
		buf = appendText(buf, s)
	}
	return append(buf, ']')
}

func appendObject(buf, raw []byte) []byte {
	if len(raw) == 0 {
		return append(buf, "{}"...)
	}
	return append(buf, raw...)
}

func appendInt(buf []byte, n int64) []byte { return strconv.AppendInt(buf, n, 10) }

func appendOptionalInt(buf []byte, n *int64) []byte {
	if n == nil {
		return append(buf, "null"...)
	}
	return appendInt(buf, *n)
}

// appendTime writes a time, or "" if it is zero.
func appendTime(buf []byte, t time.Time) []byte {
	buf = append(buf, '"')
	if !t.IsZero() {
		buf = appendInstant(buf, t)
	}
	return append(buf, '"')
}

// appendOptionalTime writes a time, or null if it is zero.
func appendOptionalTime(buf []byte, t time.Time) []byte {
	if t.IsZero() {
		return append(buf, "null"...)
	}
	return appendTime(buf, t)
}

func appendInstant(buf []byte, t time.Time) []byte {
	return append(buf, envelope.FormatTimeAG2(t)...)
}
