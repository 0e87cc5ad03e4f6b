// Package bench measures speed. Its figures compare a thing with a floor that is
// measured beside it, so that they mean the same on every machine. It knows
// nothing of what is measured; each bench has a package of its own.
package bench

import (
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"
	"time"
)

// Better says whether a higher or a lower figure is good.
type Better string

// The two ways.
const (
	Higher Better = "higher"
	Lower  Better = "lower"
)

// Figure is one measured number. Figures that are counted rather than timed
// have no floor and no ratio: their target is for the number itself.
type Figure struct {
	Name   string   `json:"name"`
	Ours   float64  `json:"ours"`
	Floor  *float64 `json:"floor"`
	Unit   string   `json:"unit"`
	Ratio  *float64 `json:"ratio"`
	Target *float64 `json:"target"`
	Better Better   `json:"better"`
	OK     bool     `json:"ok"`

	P50, P99 time.Duration `json:"-"` // of one operation, where that means something
	Noisy    bool          `json:"-"` // the floor itself varied too much to say
}

// Report is the outcome of one bench.
type Report struct {
	Bench   string         `json:"bench"`
	Params  map[string]any `json:"params"`
	Figures []Figure       `json:"figures"`
	Notes   []string       `json:"notes,omitempty"` // how a figure was computed, for a reader
}

// Verdict is what a check says about a report.
type Verdict int

// Verdicts, with the exit codes of a check.
const (
	Passed Verdict = 0
	Missed Verdict = 1
	Noisy  Verdict = 3
)

// Check reports whether every figure reached its target. A figure that missed it in a
// run with too much noise makes the run noisy, not missed.
func (r Report) Check() Verdict {
	verdict := Passed
	for _, f := range r.Figures {
		switch {
		case f.OK:
		case f.Noisy:
			if verdict == Passed {
				verdict = Noisy
			}
		default:
			verdict = Missed
		}
	}
	return verdict
}

// judge decides whether a figure reached its target.
func (f *Figure) judge() {
	if f.Target == nil {
		f.OK = true
		return
	}
	value := f.Ours
	if f.Ratio != nil {
		value = *f.Ratio
	}
	if f.Better == Higher {
		f.OK = value >= *f.Target
	} else {
		f.OK = value <= *f.Target
	}
}

// Counted returns a figure that is counted once. A nil target only reports.
func Counted(name string, ours float64, unit string, target *float64) Figure {
	f := Figure{Name: name, Ours: ours, Unit: unit, Target: target, Better: Lower}
	f.judge()
	return f
}

// Against returns a figure that is counted once, like its floor.
func Against(name string, ours, floor float64, unit string, target *float64) Figure {
	ratio := ours / floor
	f := Figure{Name: name, Ours: ours, Floor: &floor, Ratio: &ratio, Unit: unit, Target: target, Better: Lower}
	f.judge()
	return f
}

// JSON writes the report as one JSON object.
func (r Report) JSON(w io.Writer) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	if r.Figures == nil {
		r.Figures = []Figure{}
	}
	if r.Params == nil {
		r.Params = map[string]any{}
	}
	return enc.Encode(r)
}

// Table writes the report for a reader.
func (r Report) Table(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "FIGURE\tOURS\tFLOOR\tUNIT\tP50\tP99\tRATIO\tTARGET\t")
	for _, f := range r.Figures {
		verdict := "ok"
		switch {
		case f.Target == nil:
			verdict = ""
		case !f.OK && f.Noisy:
			verdict = "too noisy to say"
		case !f.OK:
			verdict = "MISSED"
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", f.Name, number(&f.Ours), number(f.Floor), f.Unit,
			duration(f.P50), duration(f.P99), ratio(f.Ratio), target(f), verdict)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for _, note := range r.Notes {
		if _, err := fmt.Fprintln(w, note); err != nil {
			return err
		}
	}
	return nil
}

func number(n *float64) string {
	switch {
	case n == nil:
		return "-"
	case *n >= 100:
		return fmt.Sprintf("%.0f", *n)
	case *n >= 1:
		return fmt.Sprintf("%.2f", *n)
	}
	return fmt.Sprintf("%.4f", *n)
}

func ratio(n *float64) string {
	if n == nil {
		return "-"
	}
	return fmt.Sprintf("%.3f", *n)
}

func target(f Figure) string {
	switch {
	case f.Target == nil:
		return "-"
	case f.Better == Higher:
		return fmt.Sprintf("≥ %g", *f.Target)
	}
	return fmt.Sprintf("≤ %g", *f.Target)
}

func duration(d time.Duration) string {
	if d == 0 {
		return "-"
	}
	return d.Round(time.Microsecond).String()
}
