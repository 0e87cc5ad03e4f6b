package v1_test

import (
	"testing"

	v1 "github.com/parley-hub/parley/client/v1"
	"github.com/parley-hub/parley/fault"
)

func TestAnAgentIsRegisteredOnce(t *testing.T) {
	t.Parallel()
	base, stop := startHub("alice")
	t.Cleanup(stop)
	c, err := v1.New(base, v1.Options{})
	if err != nil {
		t.Fatal(err)
	}
	pia, err := c.AddAgent(t.Context(), v1.Registration{Name: "pia", Kind: "human", Summary: "reviews", Capabilities: []string{"review"}})
	if err != nil {
		t.Fatal(err)
	}
	got, err := c.Agent(t.Context(), "pia")
	if err != nil || got.Passport.ID != pia.Passport.ID || *got.Passport.Kind != "human" || got.Resume.Summary != "reviews" {
		t.Errorf("%+v %v", got, err)
	}
	if _, err := c.AddAgent(t.Context(), v1.Registration{Name: "alice"}); fault.ReasonOf(err) != fault.NameTaken {
		t.Errorf("a name that is taken: %v", err)
	}
}
