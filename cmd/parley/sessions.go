package main

import (
	"context"
	"fmt"
	"io"
	"net/url"
	"strconv"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"

	"github.com/parley-hub/parley/client/hpd"
	v1 "github.com/parley-hub/parley/client/v1"
	"github.com/parley-hub/parley/dialect/hpd/wire"
)

func (a *app) sessions() *cobra.Command {
	return group("sessions", "List, show, fork and delete HPD sessions and their branches",
		a.sessionsList(), a.sessionsShow(), a.sessionsFork(), a.sessionsDelete())
}

func (a *app) sessionsList() *cobra.Command {
	var limit, offset int
	var sort string
	var ascending bool
	c := a.withHub(&cobra.Command{
		Use:     "list",
		Short:   "List sessions, the one that something happened in last first",
		Example: "  parley sessions list --limit 10",
		Args:    cobra.NoArgs,
	}, func(ctx context.Context, hub *v1.Client, _ []string) error {
		if limit < 1 || offset < 0 {
			return usageError("--limit is 1 or more, and --offset 0 or more")
		}
		by := map[string]string{"activity": "lastActivity", "created": "createdAt"}[sort]
		if by == "" {
			return usageError("--sort %s: it is activity or created", sort)
		}
		q := url.Values{"limit": {strconv.Itoa(limit)}, "offset": {strconv.Itoa(offset)}, "sortBy": {by}, "sortDirection": {"desc"}}
		if ascending {
			q.Set("sortDirection", "asc")
		}
		list, raw, err := hpd.New(hub).Sessions(ctx, q)
		if err != nil {
			return err
		}
		return a.print(raw, func(w io.Writer) error {
			if len(list) == 0 {
				_, err := fmt.Fprintln(w, "There are no such sessions. An HPD client opens them; parley serve says where it connects.")
				return err
			}
			rows := make([][]string, len(list))
			for i, s := range list {
				rows[i] = []string{cell(s.ID), ago(s.LastActivity), metadata(s.Metadata), s.LastActivity.Format(time.RFC3339), s.CreatedAt.Format(time.RFC3339)}
			}
			err := a.writeColumns(w, []column{{"SESSION", flexible}, {"LAST", fixed}, {"METADATA", flexible}, {"LAST ACTIVITY", wide}, {"CREATED", wide}}, rows)
			if err == nil && len(list) == limit {
				_, err = fmt.Fprintf(w, "\nMore: parley sessions list --limit %d --offset %d\n", limit, offset+limit)
			}
			return err
		})
	})
	c.Flags().IntVar(&limit, "limit", 50, "at most so many")
	c.Flags().IntVar(&offset, "offset", 0, "leave so many out")
	c.Flags().StringVar(&sort, "sort", "activity", "by activity or created")
	c.Flags().BoolVar(&ascending, "ascending", false, "the earliest first")
	return c
}

// metadata returns a session's metadata in one cell.
func metadata(of map[string]wire.Raw) string {
	if len(of) == 0 {
		return "-"
	}
	text, err := jsonText(of)
	if err != nil {
		return "?"
	}
	if runes := []rune(text); len(runes) > 60 {
		text = string(runes[:60]) + "…"
	}
	return cell(text)
}

func (a *app) sessionsShow() *cobra.Command {
	return a.withHub(&cobra.Command{
		Use:     "show SESSION",
		Short:   "Show a session and its branches",
		Example: "  parley sessions show $SESSION",
		Args:    cobra.ExactArgs(1),
	}, func(ctx context.Context, hub *v1.Client, args []string) error {
		client := hpd.New(hub)
		s, raw, err := client.Session(ctx, args[0])
		if err != nil {
			return err
		}
		branches, rawBranches, err := client.Branches(ctx, args[0])
		if err != nil {
			return err
		}
		return a.print(map[string]jsontext.Value{"session": raw, "branches": rawBranches}, func(w io.Writer) error {
			fmt.Fprintf(w, "session        %s\ncreated        %s\nlast activity  %s\nmetadata       %s\n\n",
				cell(s.ID), s.CreatedAt.Format(time.RFC3339), s.LastActivity.Format(time.RFC3339), metadata(s.Metadata))
			rows := make([][]string, len(branches))
			for i, b := range branches {
				rows[i] = []string{
					cell(b.ID), cell(b.Name), strconv.FormatInt(b.MessageCount, 10), cell(dashIfNil(b.ForkedFrom)), cell(dashIfNil(b.ForkedAtMessageID)),
					ago(b.LastActivity), b.LastActivity.Format(time.RFC3339),
				}
			}
			return a.writeColumns(w, []column{
				{"BRANCH", flexible},
				{"NAME", flexible},
				{"MESSAGES", fixed},
				{"FORKED FROM", flexible},
				{"AT MESSAGE", flexible},
				{"LAST", fixed},
				{"LAST ACTIVITY", wide},
			}, rows)
		})
	})
}

func dashIfNil(text *string) string {
	if text == nil || *text == "" {
		return "-"
	}
	return *text
}

func (a *app) sessionsFork() *cobra.Command {
	var branch, id, name string
	c := a.withHub(&cobra.Command{
		Use:   "fork SESSION MESSAGE",
		Short: "Make a branch of the messages up to and including one",
		Long: `Make a branch of the messages up to and including one, which keep their ids. The
branch they come from goes on as it is. parley events shows the ids of messages.`,
		Example: "  parley sessions fork $SESSION $MESSAGE --id tone-b --name 'Friendlier tone'",
		Args:    cobra.ExactArgs(2),
	}, func(ctx context.Context, hub *v1.Client, args []string) error {
		in := wire.ForkBranch{FromMessageID: &args[1]}
		if id != "" {
			in.NewBranchID = &id
		}
		if name != "" {
			in.Name = &name
		}
		made, raw, err := hpd.New(hub).Fork(ctx, wire.Scope{Session: args[0], Branch: branch}, in)
		if err != nil {
			return err
		}
		return a.print(raw, linef("%s  is a fork of %s with %d messages", cell(made.ID), cell(branch), made.MessageCount))
	})
	c.Flags().StringVar(&branch, "branch", wire.MainBranch, "the `BRANCH` to fork")
	c.Flags().StringVar(&id, "id", "", "the new branch's `ID` (default: one is made)")
	c.Flags().StringVar(&name, "name", "", "the new branch's name, for people")
	return c
}

func (a *app) sessionsDelete() *cobra.Command {
	var recursive bool
	c := a.withHub(&cobra.Command{
		Annotations: map[string]string{ends: "yes"},
		Use:         "delete SESSION [BRANCH]",
		Short:       "Delete a session with all its branches and contents, or one branch",
		Long: `Delete a session with all its branches and contents, or one branch of it. Active
runs are cancelled and streams end. It cannot be undone. The branch main goes only
with its session.`,
		Example: "  parley sessions delete $SESSION",
		Args:    cobra.RangeArgs(1, 2),
	}, func(ctx context.Context, hub *v1.Client, args []string) error {
		client := hpd.New(hub)
		if len(args) == 1 {
			if recursive {
				return usageError("--recursive is for a branch; a session is deleted with all that it has")
			}
			if err := client.DeleteSession(ctx, args[0]); err != nil {
				return err
			}
			return a.print(map[string]string{"deleted": args[0]}, line("deleted session "+cell(args[0])))
		}
		if err := client.DeleteBranch(ctx, wire.Scope{Session: args[0], Branch: args[1]}, recursive); err != nil {
			return err
		}
		return a.print(map[string]string{"session": args[0], "deleted": args[1]}, line("deleted branch "+cell(args[1])))
	})
	c.Flags().BoolVar(&recursive, "recursive", false, "with the branch's forks, if the hub's hpd.recursive_delete allows it")
	return c
}
