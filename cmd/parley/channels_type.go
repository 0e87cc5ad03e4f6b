package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/parley-hub/parley/adapter/workflow"
	"github.com/parley-hub/parley/fault"
)

// unknownType refuses a type that has no channels and that this version does not
// know: it is most likely misspelt. An extended hub may have others.
func (a *app) unknownType(name string, found int) error {
	known := channelTypes(a, nil, nil)
	if name == "" || found > 0 || slices.Contains(known, name) {
		return nil
	}
	return fault.New(fault.Invalid, "there is no channel of the type %.100q; the known types are %s", name, strings.Join(known, ", "))
}

// moreKnobs are knobs of a type that its manifest does not list.
var moreKnobs = map[string][]string{workflow.Type: {"context_vars", "supervisors"}}

// warnKnobs warns about knobs that have no effect in a type. The hub stores them, as
// clients expect; a type that this version does not know may have any.
func (a *app) warnKnobs(channelType string, given map[string]json.RawMessage) {
	all, err := adapters(allSettings.Default())
	if err != nil {
		return // reported when a hub starts
	}
	for _, adapter := range all {
		m := adapter.Manifest()
		if m.Type != channelType {
			continue
		}
		var schema map[string]json.RawMessage
		if len(m.KnobsSchema) > 0 && json.Unmarshal(m.KnobsSchema, &schema) != nil {
			return
		}
		known := slices.Sorted(maps.Keys(schema))
		known = append(append(known, moreKnobs[channelType]...), "expectations")
		for _, name := range slices.Sorted(maps.Keys(given)) {
			if !slices.Contains(known, name) {
				fmt.Fprintf(cleanWriter{a.err}, "parley: warning: the knob %q means nothing to the type %s; its knobs are %s\n", cell(name), channelType, strings.Join(known, ", "))
			}
		}
	}
}
