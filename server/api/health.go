package api

import "net/http"

type healthBody struct {
	Version     string            `json:"version"`
	Hub         any               `json:"hub"`
	Stats       any               `json:"stats"`
	Quarantined map[string]string `json:"quarantined"` // channels that cannot be folded, and why
}

func (a *API) health(c *call) error {
	health, err := a.hub.Health(c.Context())
	if err != nil {
		return err
	}
	body := healthBody{Version: a.cfg.Version, Hub: health, Stats: a.hub.Stats(), Quarantined: map[string]string{}}
	for id, err := range a.hub.Quarantined() {
		body.Quarantined[id] = err.Error()
	}
	return c.write(http.StatusOK, body)
}
