package fault_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/parley-hub/parley/fault"
)

func TestCatalogueExplainsEveryCodeOnce(t *testing.T) {
	t.Parallel()
	seen := map[fault.Code]bool{}
	for _, e := range fault.Catalogue() {
		if seen[e.Code] {
			t.Errorf("%s stands twice", e.Code)
		}
		seen[e.Code] = true
		if e.Meaning == "" || e.Remedy == "" {
			t.Errorf("%s is not explained", e.Code)
		}
		if got := fault.Retryable(fault.New(e.Code, "x")); got != e.Retryable {
			t.Errorf("%s: retryable is %v, the catalogue says %v", e.Code, got, e.Retryable)
		}
	}
	for _, code := range []fault.Code{
		fault.NotFound, fault.AccessDenied, fault.Protocol, fault.AuthFailed, fault.InboxFull, fault.RateLimited,
		fault.Invalid, fault.TooLarge, fault.Conflict, fault.Gap, fault.SlowReader, fault.Unavailable, fault.Internal,
	} {
		if !seen[code] {
			t.Errorf("%s is not in the catalogue", code)
		}
	}
}

func TestErrorsCarryTheirCode(t *testing.T) {
	t.Parallel()
	cause := errors.New("disk full")
	err := fault.Wrap(fault.Unavailable, cause, "not stored: %v", cause)
	outer := fmt.Errorf("while posting: %w", err)
	if fault.CodeOf(outer) != fault.Unavailable || err.Error() != "not stored: disk full" || !errors.Is(outer, cause) {
		t.Errorf("%v has code %s", outer, fault.CodeOf(outer))
	}
	if !errors.Is(outer, fault.New(fault.Unavailable, "")) || errors.Is(outer, fault.New(fault.Internal, "")) {
		t.Error("an error matches its own code, and no other")
	}
	if errors.Is(outer, fault.New(fault.Unavailable, "another message")) {
		t.Error("two messages are two errors")
	}
	if fault.CodeOf(nil) != "" || fault.CodeOf(cause) != fault.Internal {
		t.Errorf("nil has %q, a plain error %q", fault.CodeOf(nil), fault.CodeOf(cause))
	}
	if fault.Retryable(cause) || fault.Retryable(nil) || !fault.Retryable(outer) {
		t.Error("only what the catalogue says may succeed later")
	}
}
