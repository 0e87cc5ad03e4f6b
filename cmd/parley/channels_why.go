package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	v1 "github.com/parley-hub/parley/client/v1"
	"github.com/parley-hub/parley/fault"
)

func (a *app) channelsWhy() *cobra.Command {
	return a.withHub(&cobra.Command{
		Use:   "why CHANNEL [SEQUENCE]",
		Short: "Say why a workflow went where it went after a turn",
		Long: `Say why a workflow went where it went: which rule decided who is next, what it
read, and which rules were passed over. Without a SEQUENCE of a turn, the last.`,
		Example: "  parley channels why $WORKFLOW",
		Args:    cobra.RangeArgs(1, 2),
	}, func(ctx context.Context, hub *v1.Client, args []string) error {
		ch, err := namedChannel(ctx, hub, args[0])
		if err != nil {
			return err
		}
		before := ch.Length + 1
		if len(args) == 2 {
			at, err := strconv.ParseUint(args[1], 10, 64)
			if err != nil || at == 0 || at > ch.Length {
				return usageError("%q is not a SEQUENCE of this channel; it is 1 to %d", args[1], ch.Length)
			}
			before = at + 1
		}
		page, err := hub.Path(ctx, ch.ID, url.Values{"before": {strconv.FormatUint(before, 10)}, "limit": {"1"}})
		if err != nil {
			return err
		}
		if len(page.Items) == 0 {
			return fault.New(fault.NotFound, "nobody has taken a turn up to there; parley tail %s shows what happened", ch.ID)
		}
		step := page.Items[len(page.Items)-1]
		if len(args) == 2 && step.Sequence != before-1 {
			fmt.Fprintf(cleanWriter{a.err}, "parley: %s is not a turn; this is the turn in front of it\n", args[1])
		}
		return a.print(step, func(w io.Writer) error { return writeStep(w, ch, step) })
	})
}

// writeStep explains which transition decided who is next.
func writeStep(w io.Writer, ch *v1.Channel, step v1.Step) error {
	fmt.Fprintf(w, "turn %d, sequence %d: %s spoke at %s\n", step.Turn, step.Sequence, nameIn(ch, step.Speaker), step.CreatedAt.Local().Format("15:04:05"))
	next := "nobody is next"
	switch {
	case step.Decision.End:
		next = "it ends"
		if step.Decision.Reason != nil && *step.Decision.Reason != "" {
			next += ": " + cell(*step.Decision.Reason)
		}
	case step.Decision.Speaker != nil:
		next = nameIn(ch, *step.Decision.Speaker) + " is next"
	}
	by := map[string]string{"finish": "the speaker finished", "handoff": "the speaker handed over", "default": "no rule held: the default target"}[step.By]
	if step.Rule != nil {
		by = fmt.Sprintf("rule %d", *step.Rule)
	}
	if step.Tool != "" {
		by += " with " + cell(step.Tool)
	}
	fmt.Fprintf(w, "%s, by %s\n", next, by)
	if step.Because != nil {
		writeExplained(w, ch, *step.Because, "  ")
	}
	for _, passed := range step.PassedOver {
		fmt.Fprintf(w, "passed over: rule %d\n", passed.Rule)
		writeExplained(w, ch, passed.Because, "  ")
	}
	for _, changed := range step.Changed {
		fmt.Fprintf(w, "set: %s from %s to %s\n", cell(changed.Key), jsonCell(changed.Before), jsonCell(changed.After))
	}
	return nil
}

func writeExplained(w io.Writer, ch *v1.Channel, x v1.Explained, indent string) {
	holds := "does not hold"
	if x.Holds {
		holds = "holds"
	}
	fmt.Fprintf(w, "%s%s: %s\n", indent, nameText(ch, x.Says), holds)
	for _, read := range x.Read {
		from := ""
		if read.SenderID != "" {
			from = fmt.Sprintf(", written by %s at %d", nameIn(ch, read.SenderID), read.Sequence)
		}
		fmt.Fprintf(w, "%s  it read %s = %s%s\n", indent, cell(read.What), nameText(ch, jsonCell(read.Value)), from)
	}
	for _, of := range x.Of {
		writeExplained(w, ch, of, indent+"  ")
	}
}

// nameText replaces the ids in a text by names.
func nameText(ch *v1.Channel, text string) string {
	for id, name := range ch.Names {
		text = strings.ReplaceAll(text, id, name)
	}
	return cell(text)
}

// jsonCell returns JSON for one cell.
func jsonCell(raw json.RawMessage) string {
	if len(raw) == 0 {
		return "nothing"
	}
	return cell(string(raw))
}
