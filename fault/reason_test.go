package fault_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/parley-hub/parley/fault"
)

func TestReasonOf(t *testing.T) {
	t.Parallel()
	turn := fault.New(fault.Protocol, "not yet").Because(fault.OutOfTurn).With(fault.DetailExpected, "bob")
	for name, tt := range map[string]struct {
		err    error
		reason fault.Reason
		who    string
	}{
		"nil":                      {},
		"a plain error":            {err: errors.New("x")},
		"without a reason":         {err: fault.New(fault.Protocol, "expects")},
		"with one":                 {turn, fault.OutOfTurn, "bob"},
		"wrapped by fmt":           {fmt.Errorf("post: %w", turn), fault.OutOfTurn, "bob"},
		"wrapped without a reason": {fault.Wrap(fault.Unavailable, fmt.Errorf("x: %w", turn), "later"), fault.OutOfTurn, "bob"},
		"wrapped with another":     {fault.Wrap(fault.Protocol, turn, "ended").Because(fault.ChannelEnded), fault.ChannelEnded, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := fault.ReasonOf(tt.err); got != tt.reason {
				t.Errorf("reason %q, want %q", got, tt.reason)
			}
			if got := fault.DetailsOf(tt.err)[fault.DetailExpected]; got != tt.who {
				t.Errorf("expected %q, want %q", got, tt.who)
			}
		})
	}
}

func TestReasonsHaveACodeOfTheCatalogue(t *testing.T) {
	t.Parallel()
	codes := map[fault.Code]bool{}
	for _, e := range fault.Catalogue() {
		codes[e.Code] = true
	}
	seen := map[fault.Reason]bool{}
	for _, e := range fault.Reasons() {
		if !codes[e.Code] || seen[e.Reason] || e.Meaning == "" {
			t.Errorf("%+v: unknown code, listed twice or without meaning", e)
		}
		seen[e.Reason] = true
	}
}
