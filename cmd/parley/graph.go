package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/parley-hub/parley/graph"
)

func (a *app) graph() *cobra.Command {
	c := group("graph", "Check, draw and play workflow graphs",
		a.graphCheck(), a.graphDraw(), a.graphSimulate())
	c.Long = `Check, draw and play workflow graphs. A FILE is a graph's object as JSON or
YAML, optionally with the participants beside its own keys:

  participants: [triage, digger, scribe]
  initial_speaker: triage
  transitions:
    - when: {name: from_speaker, args: {agent_id: triage}}
      then: {name: agent, args: {agent_id: digger}}

The FILE - is standard input.`
	return c
}

// graphFile reads a graph; --participants replaces those of the file.
func (a *app) graphFile(name string, participants []string) (*graph.File, error) {
	raw, err := a.read(name)
	if err != nil {
		return nil, err
	}
	file, err := graph.ParseFile(raw, nil)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if len(participants) > 0 {
		file.Participants = nil
		for _, id := range participants {
			file.Participants = append(file.Participants, graph.Participant{ID: id, Name: id})
		}
	}
	return file, nil
}

func (a *app) graphCheck() *cobra.Command {
	var participants []string
	c := &cobra.Command{
		Use:   "check FILE",
		Short: "Find mistakes in a graph before a channel opens with it",
		Long: `Find mistakes in a graph before a channel opens with it. An error stops the
channel from opening, and the command exits with 1; a warning does neither.`,
		Example: "  parley graph check incident.yaml",
		Args:    cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			file, err := a.graphFile(args[0], participants)
			if err != nil {
				return err
			}
			findings := graph.Check(file.Graph, file.Participants.IDs())
			refused := 0
			for _, f := range findings {
				if f.Severity == graph.SeverityError {
					refused++
				}
			}
			data := map[string]any{"file": args[0], "ok": refused == 0, "findings": append([]graph.Finding{}, findings...)}
			err = a.print(data, func(w io.Writer) error {
				for _, f := range findings {
					fmt.Fprintln(w, f)
				}
				_, err := fmt.Fprintf(w, "%s: %d errors, %d warnings\n", args[0], refused, len(findings)-refused)
				return err
			})
			if err == nil && refused > 0 {
				err = fmt.Errorf("%s: a channel with this graph would be refused", args[0])
			}
			return err
		},
	}
	c.Flags().StringSliceVar(&participants, "participants", nil, "ids of who takes part, the creator first (default: those in the file)")
	return c
}

func (a *app) graphDraw() *cobra.Command {
	var format, script string
	c := &cobra.Command{
		Use:   "draw FILE",
		Short: "Draw a graph as Mermaid or DOT, with --script the way a play takes",
		Example: `  parley graph draw incident.yaml
  parley graph draw incident.yaml --format dot | dot -Tsvg > incident.svg`,
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			draw, ok := map[string]func(*graph.Graph, graph.Drawing) string{"mermaid": graph.Mermaid, "dot": graph.DOT}[format]
			if !ok {
				return usageError("--format %s: the format is mermaid or dot", format)
			}
			file, err := a.graphFile(args[0], nil)
			if err != nil {
				return err
			}
			drawing := graph.Drawing{}
			if len(file.Participants) > 0 {
				drawing.Creator = file.Participants[0].ID
			}
			if script != "" {
				played, trace, err := a.play(file, script)
				if err != nil {
					return err
				}
				file, drawing.Creator, drawing.Path = played, trace.Creator, trace.Path()
			}
			drawing.Names = file.Participants.Names()
			text := draw(file.Graph, drawing)
			return a.print(map[string]string{"format": format, "drawing": text}, func(w io.Writer) error {
				_, err := fmt.Fprint(w, text)
				return err
			})
		},
	}
	c.Flags().StringVar(&format, "format", "mermaid", "mermaid or dot")
	c.Flags().StringVar(&script, "script", "", "play this script and highlight its way")
	return c
}

func (a *app) graphSimulate() *cobra.Command {
	var script string
	c := &cobra.Command{
		Use:     "simulate FILE --script turns.yaml",
		Aliases: []string{"play"},
		Short:   "Play a script through a graph: who speaks when, and which rule matched",
		Long: `Play a script through a graph: who speaks when, and which rule matched.
A script lists what is said:

  turns:
    - text: hello             # by whoever is expected
    - body: over to you       # a packet whose routing the graph decides
      set: {job: dig}
    - handoff: scribe
      speaker: digger         # refused if it is not digger's turn
    - finish: answered`,
		Example: "  parley graph simulate incident.yaml --script turns.yaml",
		Args:    cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			file, err := a.graphFile(args[0], nil)
			if err != nil {
				return err
			}
			_, trace, err := a.play(file, script)
			if err != nil {
				return err
			}
			return a.print(trace, func(w io.Writer) error {
				_, err := fmt.Fprint(w, trace)
				return err
			})
		},
	}
	c.Flags().StringVar(&script, "script", "", "file with what is said (YAML or JSON)")
	require(c, "script")
	return c
}

// play runs a script on a graph, and returns the graph as it was used.
func (a *app) play(file *graph.File, script string) (*graph.File, *graph.Trace, error) {
	raw, err := a.read(script)
	if err != nil {
		return nil, nil, err
	}
	parsed, err := graph.ParseScript(raw)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", script, err)
	}
	trace, err := file.Simulate(parsed)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", script, err)
	}
	played, err := file.For(parsed)
	return played, trace, err
}
