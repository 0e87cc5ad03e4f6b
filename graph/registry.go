package graph

import (
	"cmp"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
)

// Limits bound what a graph may be. A zero field means its default.
type Limits struct {
	Bytes       int // of JSON; 1 MiB
	Transitions int // 4,096
	Depth       int // of nested conditions; 16
}

func (l Limits) withDefaults() Limits {
	fill := func(limit *int, fallback int) {
		if *limit <= 0 {
			*limit = fallback
		}
	}
	fill(&l.Bytes, 1<<20)
	fill(&l.Transitions, 4096)
	fill(&l.Depth, 16)
	return l
}

// Registry knows conditions and targets by name and loads graphs made of them.
// It is safe for concurrent use.
type Registry struct {
	limits Limits

	mu         sync.RWMutex
	conditions map[string]shape
	targets    map[string]shape
	version    int // goes up with every registration
}

// NewRegistry returns a new registry that holds the built-in nodes.
func NewRegistry(limits Limits) *Registry {
	r := &Registry{limits: limits.withDefaults(), conditions: map[string]shape{}, targets: map[string]shape{}}
	for _, c := range []Condition{
		Always{},
		FromSpeaker{},
		ToolCalled{},
		ContextEquals{},
		ContextThreshold{},
		ContextIn{},
		AllOf{},
		AnyOf{},
	} {
		mustRegister(r.RegisterCondition(c))
	}
	for _, t := range []Target{
		Agent{}, RoundRobin{}, Stay{}, RevertToInitiator{}, Terminate{Reason: DefaultReason},
	} {
		mustRegister(r.RegisterTarget(t))
	}
	return r
}

// mustRegister panics on an error: the built-in nodes are compiled in, so a
// refusal is a build defect.
func mustRegister(err error) {
	if err != nil {
		panic(err)
	}
}

var processRegistry = sync.OnceValue(func() *Registry { return NewRegistry(Limits{}) })

// Default returns the one registry of the process.
func Default() *Registry { return processRegistry() }

// RegisterCondition adds a condition to the default registry.
func RegisterCondition(prototype Condition) error { return Default().RegisterCondition(prototype) }

// RegisterTarget adds a target to the default registry.
func RegisterTarget(prototype Target) error { return Default().RegisterTarget(prototype) }

// RegisterCondition makes a kind of condition loadable under its name, or
// replaces the one of that name. Only the prototype's type matters, except
// that fields tagged `graph:"optional"` take their defaults from it; all other
// fields are required args.
func (r *Registry) RegisterCondition(prototype Condition) error {
	return r.register(func() map[string]shape { return r.conditions }, prototype)
}

// RegisterTarget does for targets what RegisterCondition does for conditions.
func (r *Registry) RegisterTarget(prototype Target) error {
	return r.register(func() map[string]shape { return r.targets }, prototype)
}

func (r *Registry) register(kinds func() map[string]shape, prototype interface{ Name() string }) error {
	s, err := shapeOf(prototype)
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	kinds()[prototype.Name()] = s
	r.version++
	return nil
}

func (r *Registry) currentVersion() int {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.version
}

func (r *Registry) lookup(kinds map[string]shape, what, name, path string) (shape, error) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	s, ok := kinds[name]
	if !ok {
		known := strings.Join(slices.Sorted(maps.Keys(kinds)), ", ")
		return s, refuse(path, "no transition %s registered for '%s'; registered are %s", what, name, known)
	}
	return s, nil
}

// shape is how to make a node of one kind from its args.
type shape struct {
	kind    reflect.Type // a struct
	pointer bool
	proto   reflect.Value
	fields  []field
}

type field struct {
	name     string
	index    int
	optional bool
	nullable bool
}

func shapeOf(prototype interface{ Name() string }) (shape, error) {
	v := reflect.ValueOf(prototype)
	s := shape{pointer: v.Kind() == reflect.Pointer}
	if s.pointer {
		v = v.Elem()
	}
	if v.Kind() != reflect.Struct {
		return s, refuse("", "cannot register %T: a node is a struct whose exported fields are its args", prototype)
	}
	if prototype.Name() == "" {
		return s, refuse("", "cannot register %T: its name is empty", prototype)
	}
	s.kind, s.proto = v.Type(), v
	if s.zero().Name() != prototype.Name() {
		return s, refuse("", "cannot register %T: its name must not depend on its fields", prototype)
	}
	for i := range s.kind.NumField() {
		f := s.kind.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if !f.IsExported() || name == "-" {
			continue
		}
		if f.Anonymous {
			return s, refuse("", "cannot register %T: it embeds %s; name each arg as a field of its own", prototype, f.Name)
		}
		name = cmp.Or(name, f.Name)
		s.fields = append(s.fields, field{
			name:     name,
			index:    i,
			optional: f.Tag.Get("graph") == "optional",
			nullable: f.Type == rawType || f.Type.Kind() == reflect.Pointer || f.Type.Kind() == reflect.Interface,
		})
	}
	return s, nil
}

// zero returns a node without args.
func (s shape) zero() interface{ Name() string } {
	return s.value(reflect.New(s.kind)).(interface{ Name() string })
}

// value returns a new node in the form in which its kind was registered.
func (s shape) value(made reflect.Value) any {
	if s.pointer {
		return made.Interface()
	}
	return made.Elem().Interface()
}

// args lists what the kind takes, for an error.
func (s shape) args() string {
	if len(s.fields) == 0 {
		return "no args"
	}
	names := make([]string, len(s.fields))
	for i, f := range s.fields {
		names[i] = f.name
		if f.optional {
			names[i] += " (optional)"
		}
	}
	return strings.Join(names, ", ")
}
