package store

import (
	"fmt"
	"log/slog"
	"runtime"
	"strings"
)

// Logger logs Pebble's messages. After a fatal message Pebble's goroutine is
// ended, and Pebble must not be called again.
type Logger struct {
	*slog.Logger
	Fatal func(error)
}

func (l Logger) Infof(format string, args ...any) {
	l.Debug("store: " + strings.TrimSpace(fmt.Sprintf(format, args...)))
}

func (l Logger) Errorf(format string, args ...any) {
	l.Error("store: " + strings.TrimSpace(fmt.Sprintf(format, args...)))
}

func (l Logger) Fatalf(format string, args ...any) {
	err := fmt.Errorf("store: "+format, args...)
	l.Error(err.Error())
	l.Fatal(err)
	runtime.Goexit()
}
