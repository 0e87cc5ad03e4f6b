package api

import (
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/parley-hub/parley/fault"
)

// checkQuery refuses parameters that are malformed, which net/url would leave out,
// and those that would not select what the caller means: of another name, given
// twice, or not of their kind.
func (rt route) checkQuery(r *http.Request) error {
	given, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return fault.Wrap(fault.Invalid, err, "the parameters of the address are not well formed: %v; write %% as %%25 and ; as %%3B", err)
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		i := slices.IndexFunc(rt.query, func(p param) bool { return p.name == name })
		if i < 0 {
			return fault.New(fault.Invalid, "%.100q is not a parameter of %s %s, which takes %s", name, rt.method, rt.path, rt.takes())
		}
		if err := rt.query[i].check(given[name]); err != nil {
			return err
		}
	}
	return nil
}

// takes lists the parameters of a route.
func (rt route) takes() string {
	if len(rt.query) == 0 {
		return "none"
	}
	var names []string
	for _, p := range rt.query {
		names = append(names, p.name)
	}
	return strings.Join(names, ", ")
}

func (p param) check(given []string) error {
	if len(given) > 1 && p.kind != "array" {
		return fault.New(fault.Invalid, "%s is given %d times; give it once", p.name, len(given))
	}
	if p.kind == "boolean" {
		_, err := boolean(p.name, given[0])
		return err
	}
	return nil
}

// least is the smallest number that a parameter takes: there is a sequence 0, and no
// page of nothing.
func (p param) least() int {
	if p.name == "limit" || p.name == "recent_n" {
		return 1
	}
	return 0
}

// flag reads a boolean parameter; without a value it is true.
func (c *call) flag(name string) (bool, error) {
	if !c.URL.Query().Has(name) {
		return false, nil
	}
	return boolean(name, c.URL.Query().Get(name))
}

func boolean(name, text string) (bool, error) {
	if text == "" {
		return true, nil
	}
	on, err := strconv.ParseBool(text)
	if err != nil {
		return false, fault.New(fault.Invalid, "%s=%q is neither true nor false", name, text)
	}
	return on, nil
}
