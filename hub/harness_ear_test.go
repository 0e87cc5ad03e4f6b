package hub_test

import (
	"fmt"
	"slices"
	"sync"

	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/hub"
)

// ear is a listener that records its calls.
type ear struct {
	hub.NoopListener
	mu       sync.Mutex
	channels []hub.ChannelEvent
	agents   []hub.AgentEvent
	tasks    []hub.TaskEvent
	fired    []hub.Violation
	lines    []string // everything, one line each, in order
}

func (l *ear) line(format string, args ...any) {
	l.lines = append(l.lines, fmt.Sprintf(format, args...))
}

// heard returns all calls so far, one line each, in order.
func (l *ear) heard() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.lines)
}

// clear removes all calls so far.
func (l *ear) clear() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.channels, l.agents, l.tasks, l.fired, l.lines = nil, nil, nil, nil, nil
}

func (l *ear) EnvelopePosted(e *envelope.Envelope, _ *channel.Metadata) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.line("posted %s", e.Type)
}

func (l *ear) EnvelopeRejected(e *envelope.Envelope, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.line("rejected %s: %v", e.Type, err)
}

func (l *ear) DispatchFailed(e *envelope.Envelope, recipient string, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.line("dispatch of %s to %s failed: %v", e.Type, recipient, err)
}

func (l *ear) ChannelEvent(ev hub.ChannelEvent) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.channels = append(l.channels, ev)
	l.line("channel %s", ev.Kind)
}

func (l *ear) AgentEvent(ev hub.AgentEvent) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.agents = append(l.agents, ev)
	l.line("agent %s", ev.Kind)
}

func (l *ear) ExpectationFired(_ string, v hub.Violation) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.fired = append(l.fired, v)
	l.line("expectation %s", v.Expectation.Name)
}

func (l *ear) TurnFailed(_, agent, envelopeID, message string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.line("turn of %s on %s failed: %s", agent, envelopeID, message)
}

func (l *ear) TaskEvent(ev hub.TaskEvent) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tasks = append(l.tasks, ev)
	l.line("task %s", ev.Kind)
}

func (l *ear) InboxPressure(agent string, pending, limit int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.line("inbox of %s at %d of %d", agent, pending, limit)
}
