package wire

import (
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-hub/parley/envelope"
)

// Everything is written by appending, so that raw JSON comes out byte for byte
// as it went in.

// appendText writes a string. What is not UTF-8 becomes U+FFFD, because a frame
// that is not UTF-8 would cost the reader its connection.
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

// appendOptional writes a string, or null where there is none.
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

// appendTime writes an instant, or "" where there is none.
func appendTime(buf []byte, t time.Time) []byte {
	buf = append(buf, '"')
	if !t.IsZero() {
		buf = appendInstant(buf, t)
	}
	return append(buf, '"')
}

// appendOptionalTime writes an instant, or null where there is none.
func appendOptionalTime(buf []byte, t time.Time) []byte {
	if t.IsZero() {
		return append(buf, "null"...)
	}
	return appendTime(buf, t)
}

func appendInstant(buf []byte, t time.Time) []byte {
	return append(buf, envelope.FormatTimeAG2(t)...)
}
