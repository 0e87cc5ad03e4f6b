package identity

import (
	"slices"

	"github.com/parley-hub/parley/fault"
)

// Ceiling is an operator's rule for an identity: what the identity's own rule
// cannot exceed. A list that is nil and a number that is zero set no ceiling.
type Ceiling struct {
	Access AccessCeiling `json:"access,omitzero"`
	Limits LimitsCeiling `json:"limits,omitzero"`
}

// AccessCeiling names, by glob, with whom an identity may deal at most. An
// empty list allows nobody.
type AccessCeiling struct {
	InboundFrom  []string            `json:"inbound_from,omitzero"`
	OutboundTo   []string            `json:"outbound_to,omitzero"`
	ChannelTypes ChannelTypesCeiling `json:"channel_types,omitzero"`
}

// ChannelTypesCeiling names, by glob, which channels an identity may open or
// join at most.
type ChannelTypesCeiling struct {
	Initiate []string `json:"initiate,omitzero"`
	Accept   []string `json:"accept,omitzero"`
}

// LimitsCeiling is the most that an identity's own limits may be.
type LimitsCeiling struct {
	MaxConcurrentChannels int64        `json:"max_concurrent_channels,omitzero"`
	MaxConcurrentTasks    int64        `json:"max_concurrent_tasks,omitzero"`
	Rate                  RateCeiling  `json:"rate,omitzero"`
	DelegationDepth       int64        `json:"delegation_depth,omitzero"`
	Inbox                 InboxCeiling `json:"inbox,omitzero"`
}

// RateCeiling is the most that an identity may post.
type RateCeiling struct {
	PerMinute int64 `json:"per_minute,omitzero"`
	Burst     int64 `json:"burst,omitzero"`
}

// InboxCeiling is the most unanswered envelopes that an identity may have.
type InboxCeiling struct {
	MaxPending int64 `json:"max_pending,omitzero"`
}

// Check refuses a ceiling with a negative number, or with globs that are too
// many or too long.
func (c *Ceiling) Check() error {
	for _, n := range []struct {
		name  string
		value int64
	}{
		{"max_concurrent_channels", c.Limits.MaxConcurrentChannels},
		{"max_concurrent_tasks", c.Limits.MaxConcurrentTasks},
		{"rate.per_minute", c.Limits.Rate.PerMinute},
		{"rate.burst", c.Limits.Rate.Burst},
		{"delegation_depth", c.Limits.DelegationDepth},
		{"inbox.max_pending", c.Limits.Inbox.MaxPending},
	} {
		if n.value < 0 {
			return fault.New(fault.Invalid, "rule.limits.%s is %d; give a positive number, or 0 for no ceiling", n.name, n.value)
		}
	}
	globs := Rule{Access: Access{
		InboundFrom: c.Access.InboundFrom, OutboundTo: c.Access.OutboundTo,
		ChannelTypes: ChannelTypes{Initiate: c.Access.ChannelTypes.Initiate, Accept: c.Access.ChannelTypes.Accept},
	}}
	return globs.CheckBounds(MaxGlobs)
}

// Clone returns a copy that shares no memory that either may change.
func (c *Ceiling) Clone() *Ceiling {
	d := *c
	for _, list := range []*[]string{
		&d.Access.InboundFrom, &d.Access.OutboundTo, &d.Access.ChannelTypes.Initiate, &d.Access.ChannelTypes.Accept,
	} {
		*list = slices.Clone(*list)
	}
	return &d
}

// Enforced is the rule that holds for an identity: its own, clipped by the
// operator's.
type Enforced struct {
	Limits  Limits
	own     *Rule
	ceiling Ceiling
}

// Enforce clips an identity's own rule. A nil ceiling sets none. The inbox is
// also bounded by maxPending unless that is zero.
func Enforce(own *Rule, ceiling *Ceiling, maxPending int64) *Enforced {
	e := &Enforced{Limits: own.Limits, own: own}
	if ceiling != nil {
		e.ceiling = *ceiling
	}
	most, limits := &e.ceiling.Limits, &e.Limits
	limits.MaxConcurrentChannels = lower(limits.MaxConcurrentChannels, most.MaxConcurrentChannels)
	limits.MaxConcurrentTasks = lower(limits.MaxConcurrentTasks, most.MaxConcurrentTasks)
	limits.DelegationDepth = lower(limits.DelegationDepth, most.DelegationDepth)
	limits.Rate = clipRate(limits.Rate, most.Rate)
	inbox := &limits.Inbox
	inbox.MaxPending = lower(lower(inbox.MaxPending, most.Inbox.MaxPending), maxPending)
	if inbox.HighWater != nil && *inbox.HighWater > inbox.MaxPending {
		inbox.HighWater = nil // it would never be reached
	}
	return e
}

// lower returns the smaller of two bounds; zero or less means no bound.
func lower(a, b int64) int64 {
	switch {
	case b <= 0:
		return a
	case a <= 0:
		return b
	}
	return min(a, b)
}

// clipRate clips both parts. A burst that is not given is the rate's own
// number, so it is filled in before it is compared.
func clipRate(own Rate, most RateCeiling) Rate {
	if most.PerMinute <= 0 && (most.Burst <= 0 || own.PerMinute <= 0) {
		return own
	}
	clipped := Rate{PerMinute: lower(own.PerMinute, most.PerMinute)}
	burst := own.Burst
	if burst <= 0 {
		burst = own.PerMinute
	}
	bound := most.Burst
	if bound <= 0 {
		bound = most.PerMinute
	}
	clipped.Burst = lower(burst, bound)
	return clipped
}

// AcceptsFrom reports whether a sender of that name may reach the identity.
func (e *Enforced) AcceptsFrom(name string) bool {
	return e.own.AcceptsFrom(name) && allows(e.ceiling.Access.InboundFrom, name)
}

// SendsTo reports whether the identity may address a recipient of that name.
func (e *Enforced) SendsTo(name string) bool {
	return e.own.SendsTo(name) && allows(e.ceiling.Access.OutboundTo, name)
}

// MayInitiate reports whether the identity may open a channel of that type.
func (e *Enforced) MayInitiate(channelType string) bool {
	return e.own.MayInitiate(channelType) && allows(e.ceiling.Access.ChannelTypes.Initiate, channelType)
}

// MayAccept reports whether the identity may be invited to a channel of that type.
func (e *Enforced) MayAccept(channelType string) bool {
	return e.own.MayAccept(channelType) && allows(e.ceiling.Access.ChannelTypes.Accept, channelType)
}

func allows(globs []string, name string) bool { return globs == nil || MatchAny(globs, name) }
