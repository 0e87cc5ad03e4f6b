// Package logsample bounds how often a client can cause the same log line.
package logsample

import (
	"log/slog"
	"sync"
	"time"
)

// Limiter lets one line a second through. Its zero value is ready.
type Limiter struct {
	mu      sync.Mutex
	next    time.Time
	skipped int
}

// Warn logs a line or drops it; the next line says how many were dropped. At
// the level debug none is dropped.
func (l *Limiter) Warn(log *slog.Logger, now time.Time, message string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now.Before(l.next) {
		l.skipped++
		log.Debug(message, args...)
		return
	}
	if l.skipped > 0 {
		args = append(args, "left_out", l.skipped)
	}
	l.next, l.skipped = now.Add(time.Second), 0
	log.Warn(message, args...)
}
