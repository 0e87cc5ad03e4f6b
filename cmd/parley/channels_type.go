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

// unknownType refuses to list channels of a type that has none and that this version
// does not know: it is most likely misspelt. A hub that was extended has others.
func (a *app) unknownType(name string, found int) error {
	known := channelTypes(a, nil, nil)
	if name == "" || found > 0 || slices.Contains(known, name) {
		return nil
	}
	return fault.New(fault.Invalid, "there is no channel of the type %.100q; the known types are %s", name, strings.Join(known, ", "))
}

// moreKnobs are those that a type takes beside the ones that its manifest tells
// clients.
var moreKnobs = map[string][]string{workflow.Type: {"context_vars", "supervisors"}}

// warnKnobs names the knobs that mean nothing to a type. The hub stores them, as
// clients expect; a type that this version does not know may have any.
func (a *app) warnKnobs(channelType string, given map[string]json.RawMessage) {
	all, err := adapters(allSettings.Default())
	if err != nil {
		return // a hub that starts says so
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
				fmt.Fprintf(plain{a.err}, "parley: warning: the knob %q means nothing to the type %s; its knobs are %s\n", cell(name), channelType, strings.Join(known, ", "))
			}
		}
	}
}
