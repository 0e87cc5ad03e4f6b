package view

import (
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/parley-hub/parley/fault"
)

// Params configure a view that is built by name.
type Params struct {
	// Recent is the window; 0 takes the one that fits the participants.
	Recent       int
	Participants int
}

func (p Params) recent() int {
	if p.Recent == 0 {
		return Window(p.Participants)
	}
	return p.Recent
}

// Registry builds views by name. Its zero value is empty; safe for concurrent
// use.
type Registry struct {
	mu    sync.RWMutex
	build map[string]func(Params) (View, error)
}

// NewRegistry returns a registry with the four transcripts.
func NewRegistry() *Registry {
	r := &Registry{}
	r.Register(FullTranscript, func(Params) (View, error) { return Full(), nil })
	r.Register(NamedTranscript, func(Params) (View, error) { return Named(), nil })
	r.Register(WindowedSummary, func(p Params) (View, error) { return Windowed(p.recent()) })
	r.Register(NamedWindowedSummary, func(p Params) (View, error) { return NamedWindowed(p.recent()) })
	return r
}

// Register adds a view, or replaces the one of the same name.
func (r *Registry) Register(name string, build func(Params) (View, error)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.build == nil {
		r.build = map[string]func(Params) (View, error){}
	}
	r.build[name] = build
}

// New builds the view of a name.
func (r *Registry) New(name string, params Params) (View, error) {
	r.mu.RLock()
	build, ok := r.build[name]
	known := slices.Sorted(maps.Keys(r.build))
	r.mu.RUnlock()
	if !ok {
		return nil, fault.New(fault.NotFound, "no view '%s'; there are %s", name, strings.Join(known, ", "))
	}
	return build(params)
}
