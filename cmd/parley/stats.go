package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	v1 "github.com/parley-hub/parley/client/v1"
	"github.com/parley-hub/parley/internal/screen"
)

func (a *app) stats() *cobra.Command {
	var series []string
	var since, step string
	c := a.withHub(&cobra.Command{
		Use:   "stats",
		Short: "Show what the hub measured of itself",
		Long: `Show what the hub measured of itself since it was started: of each series the
newest value, the least, the mean and the most of the time that is asked for.`,
		Example: "  parley stats --series admitted,sync_p99",
		Args:    cobra.NoArgs,
	}, func(ctx context.Context, hub *v1.Client, _ []string) error {
		q := url.Values{}
		for name, text := range map[string]string{"series": strings.Join(series, ","), "since": since, "step": step} {
			if text != "" {
				q.Set(name, text)
			}
		}
		stats, err := hub.Stats(ctx, q)
		if err != nil {
			return err
		}
		return a.print(stats, func(w io.Writer) error {
			fmt.Fprintf(w, "%d samples of %gs\n", len(stats.At), stats.Step)
			var rows [][]string
			for _, name := range slices.Sorted(maps.Keys(stats.Series)) {
				rows = append(rows, append([]string{name}, summarize(stats.Series[name], figureOf(name))...))
			}
			return a.writeColumns(w, []column{{"SERIES", fixed}, {"NOW", fixed}, {"LEAST", fixed}, {"MEAN", fixed}, {"MOST", fixed}}, rows)
		})
	})
	c.Flags().StringSliceVar(&series, "series", nil, "only these, separated by commas")
	c.Flags().StringVar(&since, "since", "", "from this `TIME` on (default: the last 10 minutes)")
	c.Flags().StringVar(&step, "step", "", "1s, 10s or 1m (default: the finest that reaches back)")
	return c
}

// summarize returns the newest known value, the least, the mean and the greatest.
func summarize(values []*float64, figure func(float64) string) []string {
	var known []float64
	for _, v := range values {
		if v != nil {
			known = append(known, *v)
		}
	}
	if len(known) == 0 {
		return []string{"-", "-", "-", "-"}
	}
	sum := 0.0
	for _, v := range known {
		sum += v
	}
	cells := make([]string, 0, 4)
	for _, v := range []float64{known[len(known)-1], slices.Min(known), sum / float64(len(known)), slices.Max(known)} {
		cells = append(cells, figure(v))
	}
	return cells
}

// figureOf returns the format of a series.
func figureOf(series string) func(float64) string {
	if series == "heap" || series == "disk_free" || strings.HasSuffix(series, "_bytes") {
		return screen.Size
	}
	if strings.HasPrefix(series, "sync_") { // seconds
		return func(v float64) string { return strconv.FormatFloat(v*1000, 'f', 1, 64) + " ms" }
	}
	return func(v float64) string {
		if math.Abs(v) >= 100 {
			v = math.Round(v) // without an exponent
		}
		return strconv.FormatFloat(v, 'f', decimals(v), 64)
	}
}

// decimals returns how many decimals show three digits of a number.
func decimals(v float64) int {
	if v == math.Trunc(v) {
		return 0
	}
	return min(max(2-int(math.Floor(math.Log10(math.Abs(v)))), 0), 6)
}
