package agh

import "net/http"

// trustBody is a new policy. If pins are absent, they do not change.
type trustBody struct {
	Policy Policy             `json:"policy"`
	Pins   *map[string]string `json:"pins,omitempty"`
}

func (c *call) showTrust(sp *space) error {
	return c.answer(http.StatusOK, map[string]any{"trust": sp.policy()})
}

func (c *call) setTrust(sp *space) error {
	var body trustBody
	if err := c.read(&body); err != nil {
		return err
	}
	t, err := sp.setTrust(c.Context(), func(t *trustPolicy) error {
		t.Policy = body.Policy
		if body.Pins != nil {
			t.Pins = *body.Pins
		}
		return t.check()
	})
	if err != nil {
		return err
	}
	return c.answer(http.StatusOK, map[string]any{"trust": t})
}
