// Package siegebench measures what honest clients of a hub keep while hostile
// ones attack it in every way at once: whether anything acknowledged is
// lost, how fast honest posts stay, and how much memory the hub takes. The hub
// runs in a process of its own on loopback, with small bounds, so that they are
// reached. It never looks into the hub.
package siegebench

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"time"

	v1 "github.com/parley-hub/parley/client/v1"
	"github.com/parley-hub/parley/internal/bench"
)

// Options of a run.
type Options struct {
	// Hub runs a hub on a folder with settings in its environment. Required.
	Hub func(ctx context.Context, dir string, env []string) *exec.Cmd
	// Floor runs ag2bench.ServeFloor, the plain echo server. Required.
	Floor func(ctx context.Context) *exec.Cmd

	Dir   string // for data; empty: a temporary folder
	Scale int    // the hostile clients are divided by it; 0: 1
	bench.Plan
}

// defaultSeconds give each server two rounds of six seconds. The hostile clients
// have fixed counts: a shorter siege is a denser one.
const defaultSeconds = 48

// leastSeconds is what setting up and checking take, however short the siege.
const leastSeconds = 20

// run is what the parts share.
type run struct {
	Options
	hub, echo *bench.Process
	operator  string // token
	mallory   string // token of the hostile agent
	honest    *honest
	sides     map[string]side
	reached   map[string]int // how often attacks met their bounds
	told      map[string]string
	last      ended
}

// side is what was measured while one server was attacked.
type side struct {
	posts int
	took  time.Duration
	acts  int64 // of hostile clients
}

func (s side) rate() float64 { return float64(s.posts) / s.took.Seconds() }

// patience is how much longer than planned a siege may take on a busy machine.
const patience = 5

// Run runs the siege. It takes Seconds, or leastSeconds, of which attacks have
// half; the hubs that are ended after it take some seconds more.
func Run(ctx context.Context, o Options) (report bench.Report, err error) {
	if o.Seconds <= 0 {
		o.Seconds = defaultSeconds
	}
	o.Plan = o.WithDefaults()
	o.Scale = max(o.Scale, 1)
	whole := ctx
	ctx, cancel := context.WithTimeout(ctx, time.Duration(patience*max(o.Seconds, leastSeconds)*float64(time.Second)))
	defer cancel()
	if o.Dir == "" {
		if o.Dir, err = os.MkdirTemp("", "parley-bench-siege-"); err != nil {
			return report, err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(o.Dir)) }()
	}
	r := &run{Options: o, sides: map[string]side{}, reached: map[string]int{}}
	defer func() { err = errors.Join(err, r.hub.Stop(), r.echo.Stop()) }()
	if err := r.start(ctx); err != nil {
		return report, err
	}
	idle, err := heap(ctx, r.hub)
	if err != nil {
		return report, err
	}
	// Half of the time is for the siege: twice each server, in turns.
	each := time.Duration(o.Seconds / 8 * float64(time.Second))
	var peak float64
	for round, against := range []string{"echo", "hub", "echo", "hub"} {
		o.Tell("siege of the "+against, round, 4)
		high, err := r.besiege(ctx, against, round, each)
		if err != nil {
			return report, err
		}
		peak = max(peak, high)
	}
	o.Tell("siege", 4, 4)
	for _, a := range attacks {
		if r.reached[a.name] == 0 {
			err = errors.Join(err, fmt.Errorf("the attack %q did not meet its bound: nothing said %q, but %q; what was met: %v", a.name, a.reaches, r.told[a.name], r.reached))
		}
	}
	if err != nil {
		return report, err
	}
	if err := r.honest.reached(); err != nil {
		return report, err
	}
	lost, acknowledged, err := r.lost(ctx)
	if err != nil {
		return report, err
	}
	o.Tell("hubs that end", 4, 4)
	ending, done := context.WithTimeout(whole, endsWithin)
	defer done()
	if r.last, err = r.ends(ending); err != nil {
		return report, err
	}
	return r.report(idle, peak, lost, acknowledged), nil
}

func (r *run) start(ctx context.Context) (err error) {
	dir := filepath.Join(r.Dir, "hub")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	if r.hub, err = bench.StartProcess(r.Hub(ctx, dir, settings.env(r.Scale))); err != nil {
		return err
	}
	if r.operator, err = addKey(ctx, r.hub, "", "operator", ""); err != nil { // without keys, a caller on this machine may make the first one
		return err
	}
	if r.mallory, err = addKey(ctx, r.hub, r.operator, "agent", "mallory"); err != nil {
		return err
	}
	if r.echo, err = bench.StartProcess(r.Floor(ctx)); err != nil {
		return err
	}
	r.honest, err = gather(ctx, r.hub, r.operator, r.mallory)
	return err
}

func addKey(ctx context.Context, hub *bench.Process, token, role, agent string) (string, error) {
	client, err := v1.New(hub.URL, v1.Options{Token: token})
	if err != nil {
		return "", err
	}
	made, _, err := client.AddKey(ctx, role, agent)
	return made, err
}

// besiege lets honest clients work on the hub while hostile ones attack a
// server, and returns the hub's largest heap.
func (r *run) besiege(ctx context.Context, against string, round int, d time.Duration) (peak float64, err error) {
	at, path := r.hub, "/"
	if against == "echo" {
		at, path = r.echo, "/echo"
	}
	where, err := url.Parse(at.URL)
	if err != nil {
		return 0, err
	}
	attack := &siege{
		address: where.Host, path: path, round: round, lasts: d, scale: r.Scale, token: r.mallory,
		large: r.honest.large, victim: r.honest.victim, foreign: r.honest.channels[0],
	}
	if against == "hub" {
		attack.operator = r.honest.v1
	}
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	watched := make(chan float64)
	go func() { watched <- watch(ctx, r.hub) }()
	attacked := make(chan struct{})
	go func() { defer close(attacked); attack.run(ctx) }()
	began := time.Now()
	posts := r.honest.work(ctx)
	took := time.Since(began)
	<-attacked
	peak = <-watched
	before := r.sides[against]
	if against == "hub" {
		for name, n := range attack.reached {
			r.reached[name] += n
		}
		r.told, err = attack.told, attack.broken
	}
	r.sides[against] = side{before.posts + posts, before.took + took, before.acts + attack.acts.Load()}
	if err == nil && posts == 0 {
		return peak, fmt.Errorf("no honest post was accepted in %s: %w", took, r.honest.refusal())
	}
	return peak, err
}

// lost ends the hub as a crash does, opens it again and counts acknowledged
// posts that are not there.
func (r *run) lost(ctx context.Context) (lost, acknowledged int, err error) {
	r.honest.close()
	r.hub.Kill()
	r.hub = nil
	if r.hub, err = bench.StartProcess(r.Hub(ctx, filepath.Join(r.Dir, "hub"), settings.env(r.Scale))); err != nil {
		return 0, 0, err
	}
	return r.honest.missing(ctx, r.hub, r.operator)
}

func (r *run) report(idle, peak float64, lost, acknowledged int) bench.Report {
	hub, echo := r.sides["hub"], r.sides["echo"]
	bound, formula := settings.bound(idle)
	ratio, full := hub.rate()/echo.rate(), peak/bound
	rate := bench.Figure{
		Name: "honest posts under siege, beside a besieged echo server", Unit: "1/s", Better: bench.Higher,
		Ours: hub.rate(), Floor: new(echo.rate()), Ratio: &ratio, Target: new(0.5), OK: ratio >= 0.5,
	}
	memory := bench.Figure{
		Name: "largest heap, of the sum of bounds", Unit: "MiB", Better: bench.Lower,
		Ours: peak / (1 << 20), Floor: new(bound / (1 << 20)), Ratio: &full, Target: new(1.0), OK: full <= 1,
	}
	return bench.Report{
		Bench: "siege",
		Params: map[string]any{
			"seconds": r.Seconds, "hostile_acts": hub.acts, "hostile_acts_against_echo": echo.acts, "attacks": attackNames(), "bounds_met": r.reached, "hubs_that_ended": r.last,
			"acknowledged": acknowledged, "honest_refused": r.honest.refused.Load(), "bound": formula,
			"go": runtime.Version(), "os": runtime.GOOS, "cpus": runtime.NumCPU(),
		},
		Figures: []bench.Figure{
			bench.Counted(fmt.Sprintf("acknowledged posts lost, of %d, after SIGKILL", acknowledged), float64(lost), "posts", new(0.0)),
			rate, memory,
		},
		Notes: []string{"bound: " + formula},
	}
}
