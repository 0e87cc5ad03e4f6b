package identity

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-hub/parley/fault"
)

// Resume says what an identity can do: what it claims, and what the hub has
// observed.
type Resume struct {
	ClaimedCapabilities []string                `json:"claimed_capabilities"`
	Domains             []string                `json:"domains"`
	Summary             string                  `json:"summary"`
	Examples            []Example               `json:"examples"`
	Observed            map[string]ObservedStat `json:"observed"`
	Version             int64                   `json:"version"`
	LastUpdated         time.Time               `json:"last_updated"` // zero until the first mutation
}

// Example is a piece of work that an identity shows.
type Example struct {
	Title   string  `json:"title"`
	Outcome string  `json:"outcome"`
	Task    *string `json:"task_id"`
	Channel *string `json:"channel_id"`
	When    *string `json:"when"`
	Note    string  `json:"note"`
}

type (
	resumeFields  Resume
	exampleFields Example
)

// DefaultResume returns what an empty object stands for.
func DefaultResume() Resume { return Resume{Version: 1} }

// UnmarshalJSONFrom fills in the defaults of missing keys.
func (r *Resume) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	fields := resumeFields(DefaultResume())
	if err := orDefault(dec, &fields); err != nil {
		return err
	}
	*r = Resume(fields)
	return nil
}

// UnmarshalJSONFrom refuses an example without a title.
func (e *Example) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	fields := struct {
		exampleFields `json:",inline"`
		Title         *string `json:"title"`
	}{}
	if err := orDefault(dec, &fields); err != nil {
		return err
	}
	if fields.Title == nil {
		return errors.New("title is missing; a string is wanted")
	}
	*e = Example(fields.exampleFields)
	e.Title = *fields.Title
	return nil
}

// MaxCapabilities bounds the capabilities that one identity claims, and those
// that are observed of it.
const MaxCapabilities = 1024

// CheckBounds refuses a resume with too many capabilities. A stored resume is
// not checked again.
func (r *Resume) CheckBounds() error {
	for _, list := range []struct {
		name string
		n    int
	}{{"claimed_capabilities", len(r.ClaimedCapabilities)}, {"observed", len(r.Observed)}} {
		if list.n > MaxCapabilities {
			return fault.New(fault.TooLarge, "resume.%s has %d capabilities; at most %d", list.name, list.n, MaxCapabilities)
		}
	}
	return nil
}

// Capabilities lists what is claimed or has been observed, sorted, each once.
func (r *Resume) Capabilities() []string {
	all := slices.Concat(r.ClaimedCapabilities, slices.Collect(maps.Keys(r.Observed)))
	slices.Sort(all)
	return slices.Compact(all)
}

// Has reports whether a capability is claimed or has been observed.
func (r *Resume) Has(capability string) bool {
	_, observed := r.Observed[capability]
	return observed || slices.Contains(r.ClaimedCapabilities, capability)
}

// Clone returns a copy that shares no memory that either may change.
func (r *Resume) Clone() *Resume {
	c := *r
	c.ClaimedCapabilities = slices.Clone(r.ClaimedCapabilities)
	c.Domains = slices.Clone(r.Domains)
	c.Examples = slices.Clone(r.Examples)
	c.Observed = maps.Clone(r.Observed)
	return &c
}

// Query selects identities; its zero fields select everything.
type Query struct {
	Capability string // exactly, claimed or observed
	Text       string // found in the summary, whatever the case
	Kind       Kind
}

// Matches reports whether an identity is selected.
func (q Query) Matches(p *Passport, r *Resume) bool {
	if q.Kind != Unspecified && !p.Kind.Is(q.Kind) {
		return false
	}
	if q.Capability != "" && !r.Has(q.Capability) {
		return false
	}
	return q.Text == "" || strings.Contains(strings.ToLower(r.Summary), strings.ToLower(q.Text))
}
