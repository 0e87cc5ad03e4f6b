package main

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/parley-hub/parley/internal/bench"
)

func TestBench(t *testing.T) {
	t.Parallel()
	target, floor := 2.0, 1.0
	figure := func(ratio float64, ok, noisy bool) benchmark {
		return func(_ context.Context, plan bench.Plan) (bench.Report, error) {
			plan.Tell("measuring", 1, 1)
			return bench.Report{Bench: "x", Figures: []bench.Figure{{
				Name: "speed", Ours: ratio, Floor: &floor, Ratio: &ratio, Target: &target, Unit: "ops/s", Better: bench.Higher, OK: ok, Noisy: noisy,
			}}}, nil
		}
	}
	known := map[string]benchmark{
		"good":   figure(3, true, false),
		"bad":    figure(1, false, false),
		"noisy":  figure(1, false, true),
		"broken": func(context.Context, bench.Plan) (bench.Report, error) { return bench.Report{}, errors.New("no disk") },
	}
	tests := []struct {
		args []string
		out  string
		code int
		err  string
	}{
		{[]string{"good"}, "speed", 0, ""},
		{[]string{"bad"}, "speed", 0, ""},
		{[]string{"good", "--check"}, "speed", 0, ""},
		{[]string{"bad", "--check"}, "speed", 1, "misses its target"},
		{[]string{"noisy", "--check"}, "speed", 3, "too noisy to say"},
		{[]string{"broken"}, "", 1, "no disk"},
		{[]string{"--list"}, "bad\nbroken\ngood\nnoisy\n", 0, ""},
		{nil, "", 2, "name what to measure: bad, broken, good, noisy"},
		{[]string{"other"}, "", 2, "name what to measure"},
		{[]string{"good", "--seconds", "-1"}, "", 2, "more than 0"},
	}
	for _, tc := range tests {
		var out, errs bytes.Buffer
		a := &app{streams: streams{strings.NewReader(""), &out, &errs}, output: "text"}
		c := a.bench(known)
		c.SetArgs(tc.args)
		c.SilenceErrors, c.SilenceUsage = true, true
		err := c.Execute()
		code := 0
		var chosen *exitError
		if errors.As(err, &chosen) {
			code = chosen.code
		} else if err != nil {
			code = exitFailed
		}
		if code != tc.code || !strings.Contains(out.String(), tc.out) || tc.err != "" && (err == nil || !strings.Contains(err.Error(), tc.err)) {
			t.Errorf("%v: code %d, %v, %q", tc.args, code, err, out.String())
		}
	}
	var out bytes.Buffer
	a := &app{streams: streams{out: &out, err: &bytes.Buffer{}}, output: "json"}
	c := a.bench(known)
	c.SetArgs([]string{"good"})
	if err := c.Execute(); err != nil || !strings.HasPrefix(out.String(), `{"bench":"x"`) {
		t.Errorf("%v %s", err, out.String())
	}
}
