package store

import (
	"context"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
)

// Logger logs Pebble's messages. A fatal message ends the calling goroutine of
// Pebble, and Pebble must not be called again.
type Logger struct {
	*slog.Logger
	Fatal func(error)
}

// chatter is the log level of Pebble's messages about its files. It is below debug,
// because an operator who debugs connections and refusals does not need them.
const chatter = slog.LevelDebug - 4

func (l Logger) Infof(format string, args ...any) {
	if ctx := context.Background(); l.Enabled(ctx, chatter) {
		l.Log(ctx, chatter, "store: "+strings.TrimSpace(fmt.Sprintf(format, args...)))
	}
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
