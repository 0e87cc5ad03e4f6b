package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	v1 "github.com/parley-hub/parley/client/v1"
)

func (a *app) tasks() *cobra.Command {
	return group("tasks", "List, show and cancel tasks", a.tasksList(), a.tasksShow(), a.tasksCancel())
}

func (a *app) tasksList() *cobra.Command {
	return listCommand(a, (*v1.Client).Tasks, listing{
		what:    "tasks",
		short:   "List tasks, the newest first",
		example: "  parley tasks list --state running",
		none:    "There are no such tasks.",
		columns: []column{{"TASK", flexible}, {"STATE", fixed}, {"OWNER", flexible}, {"TITLE", flexible}},
		filters: func(f *pflag.FlagSet) {
			f.String("owner", "", "only of this `NAME` or id")
			f.String("channel", "", "only of this channel")
			f.String("state", "", "only in this state: created, running, completed, failed, expired or cancelled")
			f.Bool("newest", true, "the newest first; --newest=false: the oldest")
		},
	}, func(t *v1.Task, names map[string]string) []string {
		return []string{cell(t.ID), t.State, cell(cmp.Or(names[t.Owner], t.Owner)), cell(t.Spec.Title)}
	})
}

func (a *app) tasksShow() *cobra.Command {
	return a.withHub(&cobra.Command{
		Use:     "show TASK",
		Short:   "Show a task",
		Example: "  parley tasks show scan-7",
		Args:    cobra.ExactArgs(1),
	}, func(ctx context.Context, hub *v1.Client, args []string) error {
		id, err := findTask(ctx, hub, args[0])
		if err != nil {
			return err
		}
		task, err := hub.Task(ctx, id)
		if err != nil {
			return err
		}
		return a.print(task.Raw, func(w io.Writer) error { return printIndented(w, task.Raw) })
	})
}

// printIndented writes JSON for a person.
func printIndented(w io.Writer, raw json.RawMessage) error {
	pretty, err := json.MarshalIndent(raw, "", "  ")
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "%s\n", pretty)
	return err
}

func (a *app) tasksCancel() *cobra.Command {
	var as, reason string
	c := a.withHub(&cobra.Command{
		Annotations: map[string]string{ends: "yes"},
		Use:         "cancel TASK",
		Short:       "Ask a task's owner to stop; the owner decides",
		Example:     "  parley tasks cancel scan-7 --reason \"no longer needed\"",
		Args:        cobra.ExactArgs(1),
	}, func(ctx context.Context, hub *v1.Client, args []string) error {
		id, err := findTask(ctx, hub, args[0])
		if err != nil {
			return err
		}
		sent, err := hub.CancelTask(ctx, id, as, reason)
		if err != nil {
			return err
		}
		return a.print(sent, linef("asked, with envelope %s", sent.ID))
	})
	c.Flags().StringVar(&as, "as", "", "the `NAME` or id that asks (default: who opened the task's channel)")
	c.Flags().StringVar(&reason, "reason", "", "why")
	return c
}
