package main

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/parley-hub/parley/message/stream"
	"github.com/parley-hub/parley/schemas"
)

func (a *app) schema() *cobra.Command {
	return group("schema", "List, show and apply the JSON Schemas of agent messages, AGH envelopes and programs' turns",
		a.schemaList(), a.schemaShow(), a.schemaValidate())
}

func (a *app) schemaList() *cobra.Command {
	return &cobra.Command{
		Use:     "list",
		Short:   "List the JSON Schemas",
		Example: "  parley schema list",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			list, err := schemas.List()
			if err != nil {
				return err
			}
			return a.print(map[string]any{"schemas": list}, func(w io.Writer) error {
				return table(w, func(w io.Writer) {
					for _, info := range list {
						fmt.Fprintf(w, "%s\t%s\n", info.Name, info.Title)
					}
				})
			})
		},
	}
}

func (a *app) schemaShow() *cobra.Command {
	return &cobra.Command{
		Use:       "show NAME",
		Short:     "Show a JSON Schema; a message's type is a name too",
		Example:   "  parley schema show tool_call",
		ValidArgs: schemas.Names(),
		Args:      cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			text, err := schemas.Text(args[0])
			if err != nil {
				return schemaError(err)
			}
			_, err = a.out.Write(text)
			return err
		},
	}
}

// schemaError turns an unknown name into a usage error.
func schemaError(err error) error {
	if errors.Is(err, schemas.ErrUnknown) {
		return usageError("%s", strings.TrimPrefix(err.Error(), "schemas: "))
	}
	return err
}

func (a *app) schemaValidate() *cobra.Command {
	return &cobra.Command{
		Use:   "validate NAME FILE",
		Short: "Check the documents of a file against a JSON Schema",
		Long: `Check the documents of a file against a JSON Schema: one, one after another, or
the elements of an array. It tells what is wrong with the lines on which
documents begin, and exits with 1 if something is. The FILE - is standard input.`,
		Example:   "  parley message normalize old.jsonl | parley schema validate message -",
		ValidArgs: schemas.Names(),
		Args:      cobra.ExactArgs(2),
		RunE: func(_ *cobra.Command, args []string) error {
			name, err := schemas.Resolve(args[0])
			if err != nil {
				return schemaError(err)
			}
			in, err := a.open(args[1:])
			if err != nil {
				return err
			}
			defer in.Close()
			return a.validateAll(name, in)
		},
	}
}

// problemRow is one error in a document.
type problemRow struct {
	Line    int    `json:"line"`
	Problem string `json:"problem"`
}

func (a *app) validateAll(name string, in io.Reader) error {
	source := stream.NewSource(in, stream.Options{})
	valid, invalid := 0, 0
	for {
		line, raw, err := source.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil && source.Failed() {
			return err
		}
		if err == nil {
			err = schemas.Validate(name, raw)
		}
		if err == nil {
			valid++
			continue
		}
		invalid++
		for _, problem := range schemas.Problems(err) {
			row := problemRow{line, problem}
			err := a.print(row, linef("line %d: %s", row.Line, row.Problem))
			if err != nil {
				return err
			}
		}
	}
	row := struct {
		Schema  string `json:"schema"`
		Valid   int    `json:"valid"`
		Invalid int    `json:"invalid"`
	}{name, valid, invalid}
	err := a.print(row, linef("%d documents are valid against %s, %d are not", valid, name, invalid))
	if err == nil && invalid > 0 {
		err = fmt.Errorf("%d of %d documents are not valid against %s", invalid, valid+invalid, name)
	}
	return err
}
