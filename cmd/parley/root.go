package main

import (
	"cmp"

	"github.com/spf13/cobra"
)

// root makes the tree of commands.
func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "parley",
		Short: "One durable hub where AI agents, whatever framework they were written in, hold conversations",
		Long: `Parley is one durable hub where AI agents, whatever framework they were
written in, and the people who watch over them hold conversations.

Start with:  parley serve

A CHANNEL is named by its id, by 6 or more characters that its id begins with,
by its label title, or as @latest, the one that was opened last.`,
		SilenceErrors: true,
		SilenceUsage:  true,
		PersistentPreRunE: func(c *cobra.Command, _ []string) error {
			// cobra checks these only after this function.
			err := cmp.Or(a.checkOutput(c), c.ValidateRequiredFlags(), c.ValidateFlagGroups())
			if err != nil {
				return err
			}
			a.begun, a.outputGiven = true, c.Flags().Changed("output")
			return nil
		},
	}
	root.CompletionOptions.DisableDefaultCmd = true
	root.PersistentFlags().StringVarP(&a.output, "output", "o", "text", "form of what is printed: text, json, or wide: text with every column of a list")
	root.PersistentFlags().BoolVar(&a.allColumns, "all-columns", false, "every column of a list, and ids in full, as -o wide")
	root.AddCommand(
		a.serve(),
		a.demo(),
		a.doctor(),
		a.agent(),
		a.channels(),
		a.join(),
		a.turns(),
		a.send(),
		a.chat(),
		a.tail(),
		a.export(),
		a.importBundle(),
		a.replay(),
		a.sessions(),
		a.events(),
		a.agents(),
		a.tasks(),
		a.requests(),
		a.audit(),
		a.stats(),
		a.top(),
		a.console(),
		a.keys(),
		a.config(),
		a.context(),
		a.graph(),
		a.message(),
		a.agh(),
		a.schema(),
		a.data(),
		a.cluster(),
		a.backup(),
		a.restore(),
		a.bench(benches),
		a.completion(),
		a.man(),
		a.version(),
	)
	nameArguments(root)
	a.completeNames(root)
	groupCommands(root)
	suggestOthers(root)
	return root
}
