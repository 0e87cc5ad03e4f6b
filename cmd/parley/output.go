package main

import (
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"
)

func (a *app) checkOutput() error {
	if a.output != "text" && a.output != "json" {
		return fmt.Errorf("-o %s: the form is text or json", a.output)
	}
	return nil
}

// print writes data as JSON with -o json, and as text says otherwise.
func (a *app) print(data any, text func(w io.Writer) error) error {
	if a.output != "json" {
		return text(plain{a.out})
	}
	return a.printJSON(data)
}

// printJSON writes data as a line of JSON.
func (a *app) printJSON(data any) error {
	encoder := json.NewEncoder(a.out)
	encoder.SetEscapeHTML(false)
	return encoder.Encode(data)
}

// table writes aligned columns; each row ends its cells with tabs.
func table(w io.Writer, rows func(w io.Writer)) error {
	aligned := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	rows(aligned)
	return aligned.Flush()
}
