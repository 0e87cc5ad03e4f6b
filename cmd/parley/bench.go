package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/parley-hub/parley/internal/bench"
	"github.com/parley-hub/parley/internal/bench/ag2bench"
	"github.com/parley-hub/parley/internal/bench/aghbench"
	"github.com/parley-hub/parley/internal/bench/apibench"
	"github.com/parley-hub/parley/internal/bench/bridgebench"
	"github.com/parley-hub/parley/internal/bench/hpdbench"
	"github.com/parley-hub/parley/internal/bench/hubbench"
	"github.com/parley-hub/parley/internal/bench/journalbench"
	"github.com/parley-hub/parley/internal/bench/messagebench"
	"github.com/parley-hub/parley/internal/gcpace"
)

// benchmark measures one subject and compares it with its floors.
type benchmark func(ctx context.Context, plan bench.Plan) (bench.Report, error)

// childFlag makes this process one that the cluster bench starts.
const childFlag = "cluster-child"

// benches are the subjects of `parley bench`.
var benches = map[string]benchmark{
	"ag2": benchAG2(""),
	"agh": func(ctx context.Context, plan bench.Plan) (bench.Report, error) {
		return aghbench.Run(ctx, aghbench.Options{Plan: plan})
	},
	"api": func(ctx context.Context, plan bench.Plan) (bench.Report, error) {
		return apibench.Run(ctx, apibench.Options{Plan: plan})
	},
	"bridge": func(ctx context.Context, plan bench.Plan) (bench.Report, error) {
		return bridgebench.Run(ctx, bridgebench.Options{Plan: plan})
	},
	"cluster": func(ctx context.Context, plan bench.Plan) (bench.Report, error) {
		return journalbench.RunCluster(ctx, journalbench.ClusterOptions{Plan: plan, Args: []string{"bench", "--" + childFlag}})
	},
	"events": func(ctx context.Context, plan bench.Plan) (bench.Report, error) {
		return hpdbench.Run(ctx, hpdbench.Options{Plan: plan})
	},
	"hub": func(ctx context.Context, plan bench.Plan) (bench.Report, error) {
		return hubbench.Run(ctx, hubbench.Options{Plan: plan})
	},
	"journal": func(ctx context.Context, plan bench.Plan) (bench.Report, error) {
		return journalbench.Run(ctx, journalbench.Options{Plan: plan})
	},
	"message": func(ctx context.Context, plan bench.Plan) (bench.Report, error) {
		return messagebench.Run(ctx, messagebench.Options{Plan: plan})
	},
	"siege": benchSiege,
}

func (a *app) bench(known map[string]benchmark) *cobra.Command {
	names := slices.Sorted(maps.Keys(known))
	var check, list, floor, child bool
	var seconds float64
	var against string
	c := &cobra.Command{
		Use:   "bench NAME",
		Short: "Measure the speed of one part against a floor measured beside it",
		Long: `Measure the speed of one part against a floor measured beside it, on this
machine: ` + strings.Join(names, ", ") + `.

With --check it exits with 1 when a figure misses its target, and with 3 when
the run was too noisy to say.`,
		Example: `  parley bench --list
  parley bench api --seconds 1`,
		ValidArgs: names,
		Args:      cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if floor {
				return ag2bench.ServeFloor(c.Context(), a.in, a.out)
			}
			if child {
				journalbench.ServeChild()
				return usageError("--%s is for the processes that a bench starts", childFlag)
			}
			if list {
				return a.print(map[string]any{"benches": names}, func(w io.Writer) error {
					for _, name := range names {
						fmt.Fprintln(w, name)
					}
					return nil
				})
			}
			if len(args) == 0 || known[args[0]] == nil {
				return usageError("name what to measure: %s", strings.Join(names, ", "))
			}
			run := known[args[0]]
			if against != "" {
				if args[0] != "ag2" {
					return usageError("--against is for ag2: only its driver speaks with other hubs")
				}
				run = benchAG2(against)
			}
			gcpace.Floor(heapFloor) // as in a hub that serves
			return a.measure(c.Context(), run, seconds, check)
		},
	}
	c.Flags().BoolVar(&check, "check", false, "compare with the targets")
	c.Flags().BoolVar(&list, "list", false, "list what can be measured")
	c.Flags().Float64Var(&seconds, "seconds", 0, "time for each figure, for siege for all (default 15, for siege 48)")
	c.Flags().StringVar(&against, "against", "", "of ag2: measure the hub at this `URL` beside ours, such as ws://127.0.0.1:7441")
	c.Flags().BoolVar(&floor, floorFlag, false, "be the server that a hub is measured against")
	c.Flags().BoolVar(&child, childFlag, false, "be a server or a node that the cluster bench started")
	for _, flag := range []string{floorFlag, childFlag} {
		_ = c.Flags().MarkHidden(flag) // it exists
	}
	return c
}

func (a *app) measure(ctx context.Context, run benchmark, seconds float64, check bool) error {
	if seconds < 0 {
		return usageError("--seconds %g: it is more than 0", seconds)
	}
	tell, end := a.progress()
	report, err := run(ctx, bench.Plan{
		Seconds: seconds,
		Tell:    func(what string, done, total int) { tell(what, int64(done), int64(total)) },
	})
	end()
	if err != nil {
		return err
	}
	write := report.Table
	if a.output == "json" {
		write = report.JSON
	}
	if err := write(a.out); err != nil || !check {
		return err
	}
	switch verdict := report.Check(); verdict {
	case bench.Passed:
		return nil
	case bench.Noisy:
		return &exitError{int(verdict), errors.New("this run was too noisy to say; try again on a quieter machine")}
	default:
		return &exitError{int(verdict), errors.New("a figure misses its target")}
	}
}
