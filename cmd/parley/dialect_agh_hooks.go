package main

import (
	"errors"
	"log/slog"

	"github.com/go-json-experiment/json"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/parley-hub/parley/dialect/agh"
	"github.com/parley-hub/parley/dialect/agh/hookcmd"
)

// hooksOfAGH tells AGH's events to an operator's command, if there is one.
type hooksOfAGH struct{ *hookcmd.Runner }

func aghHooks(set agh.HookSettings, log *slog.Logger) hooksOfAGH {
	if len(set.Command) == 0 {
		return hooksOfAGH{}
	}
	return hooksOfAGH{hookcmd.New(hookcmd.Options{Command: set.Command, Events: set.Events, Queue: set.Queue, Timeout: set.Timeout, Log: log})}
}

// onEvent is what the dialect tells events to; nil: nobody is told.
func (h hooksOfAGH) onEvent() func(agh.Event) {
	if h.Runner == nil {
		return nil
	}
	return func(e agh.Event) {
		if data, err := json.Marshal(e); err == nil { // its texts were read as JSON
			h.Tell(e.Name, data)
		}
	}
}

func (h hooksOfAGH) close() error {
	if h.Runner == nil {
		return nil
	}
	return h.Close()
}

// aghWithHooks is the dialect with its command.
type aghWithHooks struct {
	*agh.Server
	hooks hooksOfAGH
}

// Close ends the dialect, and then the command.
func (a *aghWithHooks) Close() error { return errors.Join(a.Server.Close(), a.hooks.close()) }

// Describe names the figures of both.
func (a *aghWithHooks) Describe(to chan<- *prometheus.Desc) {
	a.Server.Describe(to)
	a.hooks.Describe(to)
}

// Collect tells them.
func (a *aghWithHooks) Collect(to chan<- prometheus.Metric) {
	a.Server.Collect(to)
	a.hooks.Collect(to)
}
