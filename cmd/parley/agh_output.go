package main

import (
	"bytes"
	"encoding/json"

	"github.com/spf13/cobra"

	"github.com/parley-hub/parley/internal/jsonscan"
	"github.com/parley-hub/parley/internal/toon"
)

// jsonFlag marks the commands that have AGH's forms of output.
const jsonFlag = "json"

// withForms gives a command the forms of output that AGH's commands have.
func (a *app) withForms(c *cobra.Command) *cobra.Command {
	c.Flags().StringVarP(&a.output, "output", "o", "human", "form of what is printed: human, wide (every column of a list), json, jsonl (a line for each item of a list) or toon")
	a.output = "text" // the default without a flag, as for every command
	c.Flags().BoolFunc(jsonFlag, "the same as -o json", func(string) error {
		a.output = "json"
		return nil
	})
	return c
}

// printForm writes data with -o jsonl or -o toon.
func (a *app) printForm(data any) error {
	text, err := encodePlain(data)
	if err != nil {
		return err
	}
	if a.output == "toon" {
		_, err := a.out.Write(toon.Append(nil, text))
		return err
	}
	items := listIn(text)
	if items == nil {
		return a.printJSON(json.RawMessage(text))
	}
	for item := range jsonscan.Elements(items) {
		if err := a.printJSON(json.RawMessage(item)); err != nil {
			return err
		}
	}
	return nil
}

// encodePlain encodes data as JSON without HTML escapes.
func encodePlain(data any) ([]byte, error) {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(data)
	return jsonscan.Trim(b.Bytes()), err
}

// listIn returns the list that an answer is, or that its only member is; nil: none.
func listIn(text []byte) []byte {
	if text[0] == '[' {
		return text
	}
	var list []byte
	n := 0
	for _, value := range jsonscan.Members(text) {
		n++
		if value[0] == '[' {
			list = value
		}
	}
	if n != 1 {
		return nil
	}
	return list
}
