package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/parley-hub/parley/adapter/workflow"
	v1 "github.com/parley-hub/parley/client/v1"
)

func (a *app) channelsOpen() *cobra.Command {
	var as, ttl, knobs, graphName, intent string
	var labels []string
	c := a.withHub(&cobra.Command{
		Use:   "open TYPE NAME... --as CREATOR",
		Short: "Open a channel and wait until everyone has accepted",
		Long: `Open a channel and wait until everyone has accepted. Who does not answer is
named meanwhile. People are given by name or id, in a graph and in knobs too.

With --graph a workflow follows the graph of a file, as parley graph check reads
it; without a NAME its participants take part.`,
		Example: `  parley channels open conversation parrot --as alice
  parley channels open workflow parrot --graph talk.yaml --as alice`,
		Args: cobra.MinimumNArgs(1),
	}, func(ctx context.Context, hub *v1.Client, args []string) error {
		opening := v1.Opening{Type: args[0], Participants: args[1:], Creator: as, Intent: intent, TTL: ttl}
		var err error
		if opening.Labels, err = pairs("--label", labels); err != nil {
			return err
		}
		if err := a.knobs(&opening, knobs, graphName); err != nil {
			return err
		}
		if len(opening.Participants) == 0 {
			return usageError("NAME is missing: name who takes part besides the creator, parley channels open %s NAME... --as CREATOR", args[0])
		}
		ch, err := a.openAwaiting(ctx, hub, opening)
		if err != nil {
			return err
		}
		return a.print(ch.Raw, func(w io.Writer) error {
			for _, warning := range ch.Warnings {
				fmt.Fprintln(cleanWriter{a.err}, "warning:", strings.TrimPrefix(cell(warning), "warning: "))
			}
			_, err := fmt.Fprintf(w, "%s  %s of %s is %s\n", ch.ID, ch.Manifest.Type, people(ch), ch.State)
			return err
		})
	})
	c.Flags().StringVar(&as, "as", "", "the `NAME` or id that opens the channel")
	c.Flags().StringVar(&ttl, "ttl", "", "how long it may last, like 30m or 2h; 0 for ever")
	c.Flags().StringVar(&knobs, "knobs", "", "the adapter's settings, as a JSON object")
	c.Flags().StringVar(&graphName, "graph", "", "`FILE` with the graph of a workflow, as JSON or YAML; - is standard input")
	c.Flags().StringVar(&intent, "intent", "", "what it is for")
	c.Flags().StringArrayVar(&labels, "label", nil, "a label, as `key=value`; may be repeated")
	return c
}

// knobs merges the knobs of a flag with the graph of a file. The graph also names the
// participants if the command does not.
func (a *app) knobs(o *v1.Opening, text, graphName string) error {
	all := map[string]json.RawMessage{}
	if text != "" {
		if err := json.Unmarshal([]byte(text), &all); err != nil || all == nil {
			return usageError("--knobs is not a JSON object; it looks like '{\"ordering\":\"round_robin\"}'")
		}
		o.Knobs = json.RawMessage(text)
		a.warnKnobs(o.Type, all)
	}
	if graphName == "" {
		if o.Type == workflow.Type && all["graph"] == nil {
			return usageError("a workflow needs a graph of who speaks after whom: add --graph FILE; parley graph --help has its form")
		}
		return nil
	}
	if all["graph"] != nil {
		return usageError("--knobs and --graph both give a graph; give one of them")
	}
	file, err := a.graphFile(graphName, nil)
	if err != nil {
		return err
	}
	all["graph"] = json.RawMessage(file.Graph.Source())
	if o.Knobs, err = json.Marshal(all); err != nil {
		return err
	}
	if len(o.Participants) > 0 {
		return nil
	}
	for _, p := range file.Participants {
		if p.ID != o.Creator && p.Name != o.Creator {
			o.Participants = append(o.Participants, p.ID)
		}
	}
	return nil
}

const (
	awaitFirst = time.Second     // until the missing participants are first printed
	awaitNext  = 5 * time.Second // until they are printed again
)

// openAwaiting opens a channel and meanwhile prints who has not answered.
func (a *app) openAwaiting(ctx context.Context, hub *v1.Client, o v1.Opening) (*v1.Channel, error) {
	type answer struct {
		ch  *v1.Channel
		err error
	}
	answered := make(chan answer, 1)
	begun := time.Now()
	go func() {
		ch, err := hub.OpenChannel(ctx, o)
		answered <- answer{ch, err}
	}()
	timer := time.NewTimer(awaitFirst)
	defer timer.Stop()
	for {
		select {
		case done := <-answered:
			return done.ch, done.err
		case <-timer.C:
			if names := awaited(ctx, hub, o); len(names) > 0 {
				fmt.Fprintf(cleanWriter{a.err}, "parley: waiting for %s to accept, %s so far\n", strings.Join(names, ", "), time.Since(begun).Round(time.Second))
			}
			timer.Reset(awaitNext)
		}
	}
}

// awaited lists the participants that have not answered the invitation to the channel
// that is being opened. The hub returns a channel's id only once it is open, so the
// channel is found by its type, creator and participants.
func awaited(ctx context.Context, hub *v1.Client, o v1.Opening) []string {
	q := map[string][]string{"state": {"pending"}, "type": {o.Type}, "newest": {"true"}, "limit": {"10"}}
	if o.Creator != "" {
		q["agent"] = []string{o.Creator}
	}
	page, err := hub.Channels(ctx, q)
	if err != nil {
		return nil // opening the channel reports the error
	}
	for i := range page.Items {
		ch := &page.Items[i]
		ch.Names = page.Names
		invited := func(who string) bool {
			return slices.ContainsFunc(ch.Participants, func(p v1.Participant) bool { return p.Agent == who || ch.Name(p.Agent) == who })
		}
		if slices.ContainsFunc(o.Participants, func(who string) bool { return !invited(who) }) {
			continue
		}
		names := make([]string, len(ch.PendingAcks))
		for i, id := range ch.PendingAcks {
			names[i] = cell(cmp.Or(ch.Name(id), id))
		}
		return names
	}
	return nil
}
