package main

import (
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"
)

// checkOutput refuses forms that the command does not have. Wide is text with every
// column of a list.
func (a *app) checkOutput(c *cobra.Command) error {
	switch a.output {
	case "text", "json", "wide":
		return nil
	case "human", "jsonl", "toon":
		if c.Flags().Lookup(jsonFlag) != nil {
			return nil
		}
	}
	if c.Flags().Lookup(jsonFlag) != nil {
		return fmt.Errorf("-o %s: the form is human, wide, json, jsonl or toon", a.output)
	}
	return fmt.Errorf("-o %s: the form is text, json or wide", a.output)
}

// print writes data as JSON with -o json, in AGH's other forms where the command has
// them, and otherwise as text.
func (a *app) print(data any, text func(w io.Writer) error) error {
	switch a.output {
	case "json":
		return a.printJSON(data)
	case "jsonl", "toon":
		return a.printForm(data)
	}
	return text(cleanWriter{a.out})
}

// printJSON writes data as a line of JSON.
func (a *app) printJSON(data any) error {
	encoder := json.NewEncoder(a.out)
	encoder.SetEscapeHTML(false)
	return encoder.Encode(data)
}

// table writes aligned columns; cells end with tabs.
func table(w io.Writer, rows func(w io.Writer)) error {
	aligned := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	rows(aligned)
	return aligned.Flush()
}

// line returns a function that prints values as one line.
func line(values ...any) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := fmt.Fprintln(w, values...)
		return err
	}
}

// linef returns a function that prints a formatted line.
func linef(format string, args ...any) func(io.Writer) error {
	return line(fmt.Sprintf(format, args...))
}
