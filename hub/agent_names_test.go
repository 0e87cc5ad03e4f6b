package hub_test

import (
	"context"
	"strings"
	"testing"

	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/hub"
	"github.com/parley-hub/parley/identity"
)

// A name that looks like an id is refused.
func TestNamesThatLookLikeIDs(t *testing.T) {
	t.Parallel()
	runs(t, "registration", hub.Options{}, func(t *testing.T, r *rig) {
		bob := r.agent("bob")
		for _, name := range []string{bob.id, envelope.NewID(), strings.Repeat("0", 32)} {
			_, err := r.Register(context.Background(), hub.Registration{Passport: &identity.Passport{Name: name, Auth: identity.Auth{Scheme: "none"}}})
			if fault.CodeOf(err) != fault.Invalid || !strings.Contains(err.Error(), "looks like an id") {
				t.Errorf("%s: %v", name, err)
			}
		}
		for _, name := range []string{strings.ToUpper(envelope.NewID()[:31]) + "G", bob.id[:31], bob.id + "0"} {
			if _, err := r.Register(context.Background(), hub.Registration{Passport: &identity.Passport{Name: name, Auth: identity.Auth{Scheme: "none"}}}); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		if p, err := r.Agent(bob.id); err != nil || p.Passport.Name != "bob" {
			t.Errorf("by id: %v, %v", p.Passport, err)
		}
	})
}
