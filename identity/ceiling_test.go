package identity_test

import (
	"testing"

	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/identity"
)

func TestACeilingOnlyLowers(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name         string
		own, most    int64
		house, wants int64
	}{
		{"lower than the ceiling", 10, 20, 30, 10},
		{"clipped by the operator", 25, 20, 30, 20},
		{"clipped by the hub", 50, 0, 30, 30},
		{"no bound of its own", 0, 20, 30, 20},
		{"no operator's rule", 0, 0, 30, 30},
		{"no bound at all", 0, 0, 0, 0},
	} {
		own := identity.DefaultRule()
		own.Limits.Inbox.MaxPending, own.Limits.MaxConcurrentTasks = c.own, c.own
		ceiling := &identity.Ceiling{}
		ceiling.Limits.Inbox.MaxPending, ceiling.Limits.MaxConcurrentTasks = c.most, c.most
		got := identity.Enforce(&own, ceiling, c.house).Limits
		if got.Inbox.MaxPending != c.wants {
			t.Errorf("%s: max_pending %d, want %d", c.name, got.Inbox.MaxPending, c.wants)
		}
		if c.house == 0 && got.MaxConcurrentTasks != c.wants {
			t.Errorf("%s: max_concurrent_tasks %d, want %d", c.name, got.MaxConcurrentTasks, c.wants)
		}
	}
}

func TestARateIsClippedInBothParts(t *testing.T) {
	t.Parallel()
	type rate = identity.Rate
	for _, c := range []struct {
		own  rate
		most identity.RateCeiling
		want rate
	}{
		{rate{}, identity.RateCeiling{}, rate{}},
		{rate{}, identity.RateCeiling{PerMinute: 60}, rate{60, 60}},
		{rate{}, identity.RateCeiling{PerMinute: 60, Burst: 5}, rate{60, 5}},
		{rate{600, 0}, identity.RateCeiling{PerMinute: 60}, rate{60, 60}},
		{rate{600, 600}, identity.RateCeiling{PerMinute: 60, Burst: 5}, rate{60, 5}},
		{rate{30, 2}, identity.RateCeiling{PerMinute: 60, Burst: 5}, rate{30, 2}},
		{rate{30, 0}, identity.RateCeiling{Burst: 5}, rate{30, 5}},
	} {
		own := identity.DefaultRule()
		own.Limits.Rate = c.own
		ceiling := &identity.Ceiling{Limits: identity.LimitsCeiling{Rate: c.most}}
		if got := identity.Enforce(&own, ceiling, 0).Limits.Rate; got != c.want {
			t.Errorf("%+v under %+v is %+v, want %+v", c.own, c.most, got, c.want)
		}
	}
}

func TestBothRulesMustAllow(t *testing.T) {
	t.Parallel()
	own := identity.DefaultRule()
	own.Access.OutboundTo = []string{"a*"}
	ceiling := &identity.Ceiling{}
	ceiling.Access.OutboundTo = []string{"*b"}
	ceiling.Access.InboundFrom = []string{}
	e := identity.Enforce(&own, ceiling, 0)
	for name, want := range map[string]bool{"ab": true, "a": false, "b": false} {
		if got := e.SendsTo(name); got != want {
			t.Errorf("SendsTo(%q) = %v", name, got)
		}
	}
	if e.AcceptsFrom("anyone") {
		t.Error("an empty list allows nobody")
	}
	if !e.MayInitiate("workflow") || !e.MayAccept("workflow") {
		t.Error("a list that is not given sets no ceiling")
	}
}

func TestACeilingIsChecked(t *testing.T) {
	t.Parallel()
	negative := &identity.Ceiling{}
	negative.Limits.Rate.PerMinute = -1
	if err := negative.Check(); fault.CodeOf(err) != fault.Invalid {
		t.Errorf("a negative rate: %v", err)
	}
	long := &identity.Ceiling{}
	long.Access.InboundFrom = make([]string, identity.MaxGlobs+1)
	if err := long.Check(); fault.CodeOf(err) != fault.TooLarge {
		t.Errorf("too many globs: %v", err)
	}
}
