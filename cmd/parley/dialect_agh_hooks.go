package main

import (
	"errors"
	"log/slog"

	"github.com/go-json-experiment/json"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/parley-hub/parley/dialect/agh"
	"github.com/parley-hub/parley/dialect/agh/hookcmd"
)

// hooksOfAGH passes AGH's events to an operator's command, if there is one.
type hooksOfAGH struct{ *hookcmd.Runner }

func aghHooks(set agh.HookSettings, log *slog.Logger) hooksOfAGH {
	if len(set.Command) == 0 {
		return hooksOfAGH{}
	}
	return hooksOfAGH{hookcmd.New(hookcmd.Options{Command: set.Command, Events: set.Events, Queue: set.Queue, Timeout: set.Timeout, Log: log})}
}

// onEvent returns the function that the dialect calls with events; nil: none.
func (h hooksOfAGH) onEvent() func(agh.Event) {
	if h.Runner == nil {
		return nil
	}
	return func(e agh.Event) {
		if data, err := json.Marshal(e); err == nil { // its strings were read as JSON
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

// aghWithHooks is the dialect with its hook command.
type aghWithHooks struct {
	*agh.Server
	hooks hooksOfAGH
}

// Close ends the dialect, and then the command.
func (a *aghWithHooks) Close() error { return errors.Join(a.Server.Close(), a.hooks.close()) }

// Describe implements prometheus.Collector for both.
func (a *aghWithHooks) Describe(to chan<- *prometheus.Desc) {
	a.Server.Describe(to)
	a.hooks.Describe(to)
}

// Collect implements prometheus.Collector for both.
func (a *aghWithHooks) Collect(to chan<- prometheus.Metric) {
	a.Server.Collect(to)
	a.hooks.Collect(to)
}
