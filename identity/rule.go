package identity

import (
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-hub/parley/fault"
)

// Rule says what an identity may do, and how much of it.
type Rule struct {
	Version int64  `json:"version"`
	Access  Access `json:"access"`
	Limits  Limits `json:"limits"`
}

// Access names, by glob, with whom an identity may deal.
type Access struct {
	InboundFrom  []string     `json:"inbound_from"`
	OutboundTo   []string     `json:"outbound_to"`
	ChannelTypes ChannelTypes `json:"channel_types"`
}

// ChannelTypes names, by glob, which channels an identity may open or join.
type ChannelTypes struct {
	Initiate []string `json:"initiate"`
	Accept   []string `json:"accept"`
}

// Limits bounds what an identity may use; zero is no bound.
type Limits struct {
	MaxConcurrentChannels int64 `json:"max_concurrent_channels"`
	MaxConcurrentTasks    int64 `json:"max_concurrent_tasks"`
	ChannelTTLDefault     TTL   `json:"channel_ttl_default"`
	TaskTTLDefault        TTL   `json:"task_ttl_default"`
	Rate                  Rate  `json:"rate"`
	DelegationDepth       int64 `json:"delegation_depth"`
	Inbox                 Inbox `json:"inbox"`
}

// Rate bounds how often an identity may post. Burst is how many at once, or
// PerMinute if it is zero.
type Rate struct {
	PerMinute int64 `json:"per_minute"`
	Burst     int64 `json:"burst"`
}

// Inbox bounds how many unanswered envelopes an identity may have.
type Inbox struct {
	MaxPending int64  `json:"max_pending"`
	Overflow   string `json:"overflow"` // stored; every value refuses
	HighWater  *int64 `json:"high_water"`
}

// defaultMaxPending is the size of an inbox for which no rule sets another.
const defaultMaxPending = 1000

// KeepsRead reports whether an envelope takes its place until it is answered, and a
// receipt does not free it. This is how AG2 counts, and what a rule that lowers the
// default asks for. In the default inbox, which nobody chose, a receipt is enough:
// otherwise whoever only reads would in time stop everybody else.
func (i Inbox) KeepsRead() bool {
	return 0 < i.MaxPending && i.MaxPending < defaultMaxPending
}

// DefaultRule returns the rule of an identity that was given none.
func DefaultRule() Rule {
	return Rule{
		Version: 1,
		Access: Access{
			InboundFrom:  []string{"*"},
			OutboundTo:   []string{"*"},
			ChannelTypes: ChannelTypes{Initiate: []string{"*"}, Accept: []string{"*"}},
		},
		Limits: Limits{
			ChannelTTLDefault: TextTTL("2h"),
			TaskTTLDefault:    TextTTL("15m"),
			DelegationDepth:   5,
			Inbox:             Inbox{MaxPending: defaultMaxPending, Overflow: "reject"},
		},
	}
}

type (
	ruleFields         Rule
	accessFields       Access
	channelTypesFields ChannelTypes
	limitsFields       Limits
	rateFields         Rate
	inboxFields        Inbox
)

// UnmarshalJSONFrom fills in the defaults of missing keys, at every level.
func (r *Rule) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	fields := ruleFields(DefaultRule())
	if err := orDefault(dec, &fields); err != nil {
		return err
	}
	*r = Rule(fields)
	return nil
}

// UnmarshalJSONFrom fills in the defaults of missing keys.
func (a *Access) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	*a = DefaultRule().Access
	return orDefault(dec, (*accessFields)(a))
}

// UnmarshalJSONFrom fills in the defaults of missing keys.
func (c *ChannelTypes) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	*c = DefaultRule().Access.ChannelTypes
	return orDefault(dec, (*channelTypesFields)(c))
}

// UnmarshalJSONFrom fills in the defaults of missing keys.
func (l *Limits) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	*l = DefaultRule().Limits
	return orDefault(dec, (*limitsFields)(l))
}

// UnmarshalJSONFrom fills in the defaults of missing keys.
func (r *Rate) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	*r = DefaultRule().Limits.Rate
	return orDefault(dec, (*rateFields)(r))
}

// UnmarshalJSONFrom fills in the defaults of missing keys.
func (i *Inbox) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	*i = DefaultRule().Limits.Inbox
	return orDefault(dec, (*inboxFields)(i))
}

// CheckBounds refuses a rule with more than most globs in one list (MaxGlobs at
// most), or with a glob that is too long. A stored rule is not checked again:
// MatchAny bounds its cost by a number of steps that no setting changes, so
// that every hub decides alike.
func (r *Rule) CheckBounds(most int) error {
	most = min(most, MaxGlobs)
	for _, list := range []struct {
		name  string
		globs []string
	}{
		{"inbound_from", r.Access.InboundFrom},
		{"outbound_to", r.Access.OutboundTo},
		{"channel_types.initiate", r.Access.ChannelTypes.Initiate},
		{"channel_types.accept", r.Access.ChannelTypes.Accept},
	} {
		if n := len(list.globs); n > most {
			return fault.New(fault.TooLarge, "rule.access.%s lists %d globs; at most %d (limits.rule_globs)", list.name, n, most)
		}
		for i, glob := range list.globs {
			if len(glob) > MaxGlob {
				return fault.New(fault.TooLarge, "rule.access.%s[%d] has %d bytes; at most %d", list.name, i, len(glob), MaxGlob)
			}
		}
	}
	return nil
}

// AcceptsFrom reports whether a sender of that name may reach the identity.
func (r *Rule) AcceptsFrom(name string) bool { return MatchAny(r.Access.InboundFrom, name) }

// SendsTo reports whether the identity may address a recipient of that name.
func (r *Rule) SendsTo(name string) bool { return MatchAny(r.Access.OutboundTo, name) }

// MayInitiate reports whether the identity may open a channel of that type.
func (r *Rule) MayInitiate(channelType string) bool {
	return MatchAny(r.Access.ChannelTypes.Initiate, channelType)
}

// MayAccept reports whether the identity may be invited to a channel of that type.
func (r *Rule) MayAccept(channelType string) bool {
	return MatchAny(r.Access.ChannelTypes.Accept, channelType)
}

// HighWaterMark returns the number of pending envelopes at which pressure is
// reported. It is off if there is no cap, or if the mark itself is zero or less.
func (i Inbox) HighWaterMark() (int64, bool) {
	switch {
	case i.MaxPending <= 0:
		return 0, false
	case i.HighWater == nil:
		// Floor of four fifths, without a product that could overflow.
		return max(1, i.MaxPending/5*4+i.MaxPending%5*4/5), true
	default:
		return *i.HighWater, *i.HighWater > 0
	}
}

// Clone returns a copy that shares no memory that either may change.
func (r *Rule) Clone() *Rule {
	c := *r
	c.Access.InboundFrom = slices.Clone(r.Access.InboundFrom)
	c.Access.OutboundTo = slices.Clone(r.Access.OutboundTo)
	c.Access.ChannelTypes.Initiate = slices.Clone(r.Access.ChannelTypes.Initiate)
	c.Access.ChannelTypes.Accept = slices.Clone(r.Access.ChannelTypes.Accept)
	return &c
}
