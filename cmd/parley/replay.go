package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"

	"github.com/parley-hub/parley/channel"
	"github.com/parley-hub/parley/hub"
	"github.com/parley-hub/parley/internal/bundle"
	"github.com/parley-hub/parley/internal/replay"
	"github.com/parley-hub/parley/server/config"
)

func (a *app) replay() *cobra.Command {
	var graphFile string
	c := &cobra.Command{
		Use:   "replay FILE",
		Short: "Fold a bundle again, and say where behaviour differs",
		Long: `Fold the channels of a bundle again, with this version's rules and without a hub,
and say where they behave otherwise: who would be refused, who would be next, where a
channel would end, what it would fold to. With --graph a workflow is played with
another graph, and compared with its own. It exits with 1 if anything differs, so
that a bundle can be kept as a test.`,
		Example: `  parley replay incident.bundle
  parley replay incident.bundle --graph incident-v2.yaml`,
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			var knobs jsontext.Value
			if graphFile != "" {
				parsed, err := a.graphFile(graphFile, nil)
				if err != nil {
					return err
				}
				if knobs, err = json.Marshal(parsed.Graph); err != nil {
					return err
				}
			}
			file, err := os.Open(args[0])
			if err != nil {
				return err
			}
			defer file.Close()
			found, err := replayBundle(allSettings.Default(), file, knobs)
			if err != nil {
				return fmt.Errorf("%s: %w", args[0], err)
			}
			return a.tellReplayed(args[0], found)
		},
	}
	c.Flags().StringVar(&graphFile, "graph", "", "play a workflow with the graph of this `FILE`")
	return c
}

// replayed is a channel of a bundle with its differences.
type replayed struct {
	Channel     string              `json:"channel_id"`
	Type        string              `json:"type"`
	Envelopes   uint64              `json:"envelopes"`
	Differences []replay.Difference `json:"differences"`
}

func replayBundle(cfg config.Config, from io.Reader, graph jsontext.Value) (all []replayed, err error) {
	in, err := bundle.NewReader(from)
	if err != nil {
		return nil, err
	}
	known, err := adapters(cfg)
	if err != nil {
		return nil, err
	}
	byKey := map[channel.Key]channel.Adapter{}
	for _, one := range known {
		manifest := one.Manifest()
		byKey[manifest.Key()] = one
	}
	for {
		part, err := in.Next()
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, err
		}
		if part.Content != nil {
			continue
		}
		m := part.Metadata
		rules := byKey[m.Manifest.Key()]
		if rules == nil {
			return nil, fmt.Errorf("channel %s is a %s, version %d, which this version does not know", m.ID, m.Manifest.Type, m.Manifest.Version)
		}
		one := replayed{Channel: m.ID, Type: m.Manifest.Type, Envelopes: part.Channel.Envelopes, Differences: []replay.Difference{}}
		envelopes := in.Envelopes(part.Channel)
		var found []replay.Difference
		if graph == nil {
			found, err = replay.Compare(rules, m, envelopes, func() replay.Outcome {
				return replay.Outcome{State: in.End().State, Expected: in.End().Expected}
			}, hub.HubMade)
		} else {
			var knobs []byte
			if knobs, err = withGraph(rules, m, graph, part.Channel.Names); err == nil {
				found, err = replay.CompareKnobs(rules, m, knobs, envelopes, hub.HubMade)
			}
		}
		if err != nil {
			return nil, err
		}
		names := namesOf(part.Channel.Names)
		for _, d := range found {
			d.Says = names.Replace(d.Says)
			one.Differences = append(one.Differences, d)
		}
		all = append(all, one)
	}
}

// withGraph returns a channel's knobs with another graph, which may have participants
// by name.
func withGraph(rules channel.Adapter, m *channel.Metadata, graph jsontext.Value, names map[string]string) ([]byte, error) {
	knobs := map[string]jsontext.Value{}
	if len(m.Knobs) > 0 {
		if err := json.Unmarshal(m.Knobs, &knobs); err != nil {
			return nil, err
		}
	}
	if knobs["graph"] == nil {
		return nil, fmt.Errorf("channel %s is a %s without a graph; leave out --graph", m.ID, m.Manifest.Type)
	}
	knobs["graph"] = graph
	text, err := json.Marshal(knobs, json.Deterministic(true))
	if err != nil {
		return nil, err
	}
	if by, ok := rules.(channel.KnobNamer); ok {
		ids := map[string]string{}
		for id, name := range names {
			ids[name] = id
		}
		text = by.NameKnobs(text, func(name string) string {
			if id, ok := ids[name]; ok {
				return id
			}
			return name
		})
	}
	return text, nil
}

// namesOf replaces ids by names.
func namesOf(names map[string]string) *strings.Replacer {
	var pairs []string
	for id, name := range names {
		if id != "" {
			pairs = append(pairs, id, oneLine(name))
		}
	}
	return strings.NewReplacer(pairs...)
}

func (a *app) tellReplayed(file string, all []replayed) error {
	differ := 0
	for _, one := range all {
		differ += len(one.Differences)
	}
	err := a.print(map[string]any{"bundle": file, "ok": differ == 0, "channels": all}, func(w io.Writer) error {
		for _, one := range all {
			for _, d := range one.Differences {
				fmt.Fprintf(w, "%s %d: %s\n", one.Channel, d.Sequence, oneLine(d.Says))
			}
			fmt.Fprintf(w, "%s: a %s of %s, %s\n", one.Channel, oneLine(one.Type), plural(int(one.Envelopes), "envelope"), plural(len(one.Differences), "difference"))
		}
		return nil
	})
	if err == nil && differ > 0 {
		err = fmt.Errorf("%s: %s", file, plural(differ, "difference"))
	}
	return err
}
