package api

import (
	"net/http"
	"strings"
	"time"

	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/server/stats"
)

// showStats shows the hub's measurements.
func (a *API) showStats(c *call) error {
	if !c.who.seesAll() {
		return fault.New(fault.AccessDenied, "stats take a key of role operator or reader").Because(fault.NeedsRole)
	}
	if a.cfg.Stats == nil {
		return fault.New(fault.NotFound, "this hub keeps no stats")
	}
	params := c.URL.Query()
	q := stats.Query{Since: time.Now().Add(-10 * time.Minute)}
	if text := params.Get("series"); text != "" {
		q.Series = strings.Split(text, ",")
	}
	var err error
	if text := params.Get("since"); text != "" {
		if q.Since, err = envelope.ParseTime(text); err != nil {
			return fault.Wrap(fault.Invalid, err, "since=%q is not a time; write it like 2026-03-09T10:15:42Z", text)
		}
	}
	if text := params.Get("step"); text != "" {
		if q.Step, err = spanOf(text); err != nil {
			return err
		}
	}
	answer, err := a.cfg.Stats.Read(q)
	if err != nil {
		return err
	}
	return c.write(http.StatusOK, answer)
}

// spanOf reads a duration or a number of seconds.
func spanOf(text string) (time.Duration, error) {
	step, err := time.ParseDuration(text)
	if err != nil {
		step, err = time.ParseDuration(text + "s")
	}
	if err != nil || step <= 0 {
		return 0, fault.New(fault.Invalid, "step=%q is not a duration; it is 1s, 10s or 1m", text)
	}
	return step, nil
}
