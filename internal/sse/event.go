package sse

import (
	"bytes"
	"net/http"
	"strings"
)

// ContentType is the media type of a stream.
const ContentType = "text/event-stream"

// AppendEvent appends one event. An empty id or name is left out. Whatever id,
// name and data hold, they stay inside this one event: data with line breaks
// becomes one data line per line, which the reader joins with LF again; a line
// break in id or name ends it.
func AppendEvent(buf []byte, id, name string, data []byte) []byte {
	if id = firstLine(id); id != "" {
		buf = append(append(append(buf, "id: "...), id...), '\n')
	}
	if name = firstLine(name); name != "" {
		buf = append(append(append(buf, "event: "...), name...), '\n')
	}
	for {
		end := lineEnd(data)
		if end < 0 {
			return append(append(append(buf, "data: "...), data...), "\n\n"...)
		}
		buf = append(append(append(buf, "data: "...), data[:end]...), '\n')
		if data[end] == '\r' && end+1 < len(data) && data[end+1] == '\n' {
			end++
		}
		data = data[end+1:]
	}
}

// lineEnd returns where the first line of data ends, or -1. Searching for each
// byte separately is several times faster than for either.
func lineEnd(data []byte) int {
	lf := bytes.IndexByte(data, '\n')
	if lf < 0 {
		return bytes.IndexByte(data, '\r')
	}
	if cr := bytes.IndexByte(data[:lf], '\r'); cr >= 0 {
		return cr
	}
	return lf
}

// AppendComment appends a comment of one line, which readers ignore.
func AppendComment(buf []byte, text string) []byte {
	return append(append(append(buf, ": "...), firstLine(text)...), "\n\n"...)
}

// firstLine cuts a text where a reader would see a line end. A NUL makes a
// browser ignore an id.
func firstLine(s string) string {
	if end := strings.IndexAny(s, "\r\n\x00"); end >= 0 {
		return s[:end]
	}
	return s
}

// Wanted reports whether a request asks for a stream by its Accept header. A
// HEAD request never does: a stream without a body would not end.
func Wanted(r *http.Request) bool {
	return r.Method != http.MethodHead && strings.Contains(r.Header.Get("Accept"), ContentType)
}

// LastEventID returns the id after which a reconnecting reader goes on, or empty.
func LastEventID(r *http.Request) string { return r.Header.Get("Last-Event-ID") }
