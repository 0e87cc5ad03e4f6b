package main

import (
	"fmt"
	"strings"
	"time"
)

// progressEvery bounds how often a bar is drawn.
const progressEvery = 100 * time.Millisecond

// progress draws a bar if the output is a terminal. The last function that it returns
// ends the bar's line.
func (a *app) progress() (tell func(what string, done, total int64), end func()) {
	if !isTerminal(a.err) {
		return func(string, int64, int64) {}, func() {}
	}
	var last time.Time
	drawn := false
	tell = func(what string, done, total int64) {
		if now := time.Now(); now.Sub(last) >= progressEvery || done == total {
			last, drawn = now, true
			fmt.Fprintf(a.err, "\r\x1b[K%s", bar(what, done, total))
		}
	}
	return tell, func() {
		if drawn {
			fmt.Fprint(a.err, "\r\x1b[K")
		}
	}
}

// bar returns the bar's line. A total of 0 is not known yet.
func bar(what string, done, total int64) string {
	const width = 30
	if total <= 0 {
		return fmt.Sprintf("%s %d", what, done)
	}
	share := min(float64(max(done, 0))/float64(total), 1)
	full := int(share * width)
	return fmt.Sprintf("[%s%s] %3d%% %s", strings.Repeat("#", full), strings.Repeat(" ", width-full), int(share*100), what)
}
