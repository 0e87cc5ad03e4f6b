package main

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/parley-hub/parley/server/config"
)

func (a *app) config() *cobra.Command {
	return group("config", "Check, show and explain the configuration",
		a.configCheck(), a.configShow(), a.configReference())
}

func (a *app) configCheck() *cobra.Command {
	return &cobra.Command{
		Use:     "check FILE",
		Short:   "Say whether a configuration file is right",
		Example: "  parley config check parley.yaml",
		Args:    cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			type result struct {
				File   string   `json:"file"`
				OK     bool     `json:"ok"`
				Keys   int      `json:"keys"`
				Errors []string `json:"errors"`
			}
			settings, err := allSettings.Load(config.Sources{File: args[0]})
			if err != nil {
				if a.output == "json" {
					return errors.Join(a.print(result{File: args[0], Errors: strings.Split(err.Error(), "\n")}, nil), err)
				}
				return err
			}
			set := 0
			for _, e := range settings.Effective {
				if e.Origin != "default" {
					set++
				}
			}
			return a.print(result{File: args[0], OK: true, Keys: set, Errors: []string{}}, linef("%s is fine; it sets %d of %d keys", args[0], set, len(allSettings)))
		},
	}
}

func (a *app) configShow() *cobra.Command {
	c := &cobra.Command{
		Use:   "show",
		Short: "Show every setting with its effective value and where it comes from",
		Long: `Show every setting with its effective value and where it comes from: the
default, the file, the environment, or a flag. Takes the flags of parley serve.`,
		Example: "  parley config show --listen 127.0.0.1:9000",
		Args:    cobra.NoArgs,
	}
	flags := addSettings(c, everyKey)
	c.RunE = func(*cobra.Command, []string) error {
		settings, err := flags.load(a.environ)
		if err != nil {
			return err
		}
		data := map[string]any{"settings": settings.Effective}
		chosen, err := a.chooseHub(&hubFlags{settings: flags})
		if err == nil {
			data["hub"] = chosen
		}
		return a.print(data, func(w io.Writer) error {
			if chosen.URL != "" {
				fmt.Fprintf(w, "Commands ask the hub %s.\n\n", chosen)
			}
			return table(w, func(w io.Writer) {
				fmt.Fprintln(w, "KEY\tVALUE\tORIGIN")
				for _, e := range settings.Effective {
					fmt.Fprintf(w, "%s\t%s\t%s\n", e.Key, e.Text(), e.Origin)
				}
			})
		})
	}
	return c
}

func (a *app) configReference() *cobra.Command {
	return &cobra.Command{
		Use:     "reference",
		Short:   "Print every key with its default and meaning, as the docs page has it",
		Example: "  parley config reference > docs/config.md",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return a.print(map[string]any{"keys": allSettings.Reference()}, allSettings.WriteReference)
		},
	}
}
