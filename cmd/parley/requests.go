package main

import (
	"cmp"
	"context"
	"io"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	v1 "github.com/parley-hub/parley/client/v1"
	"github.com/parley-hub/parley/request"
)

func (a *app) requests() *cobra.Command {
	return group("requests", "List, show and answer what waits for somebody", a.requestsList(), a.requestsShow(), a.requestsAnswer())
}

// requestKinds are those that the hub itself knows; programs ask with others too.
var requestKinds = []string{request.Approval, request.Permission, request.Clarification, request.Continuation, request.ClientTool, "turn", "invite"}

func (a *app) requestsList() *cobra.Command {
	newest := func(hub *v1.Client, ctx context.Context, q url.Values) (*v1.Page[v1.Request], error) {
		if !q.Has("sort") {
			q.Set("newest", "true")
		}
		return hub.Requests(ctx, q)
	}
	return listCommand(a, newest, listing{
		what:    "requests",
		short:   "List requests, the newest first: approvals, permissions, questions",
		example: "  parley requests list --state open --sort due",
		none:    "There are no such requests.",
		columns: []column{
			{"REQUEST", ids},
			{"STATE", fixed},
			{"KIND", flexible},
			{"DUE", fixed},
			{"ASKED BY", flexible},
			{"FOR", flexible},
			{"TITLE", flexible},
			{"CHANNEL", wide},
		},
		filters: func(f *pflag.FlagSet) {
			f.String("state", "", "only in this state: open, answered, expired or cancelled")
			f.String("kind", "", "only of this kind: "+strings.Join(requestKinds, ", ")+", or another that is in use")
			f.String("channel", "", "only of this channel")
			f.String("for", "", "only for this `NAME` or id")
			f.String("asked-by", "", "only of this `NAME` or id")
			f.String("as", "", "only what this `NAME` or id may see")
			f.String("sort", "", "due: the first due first; asked: in the order of asking")
			f.String("before", "", "only those in front of this one")
		},
	}, func(r *v1.Request, names map[string]string) []string {
		when := "-"
		switch {
		case !r.DueAt.IsZero() && a.wideOutput():
			when = r.DueAt.Format(time.RFC3339)
		case !r.DueAt.IsZero() && r.State != request.Open:
			when = ago(r.DueAt)
		case !r.DueAt.IsZero():
			when = due(&r.DueAt, time.Now().After(r.DueAt))
		}
		name := func(id string) string { return cell(cmp.Or(names[id], id, "-")) }
		return []string{a.requestID(r), string(r.State), cell(r.Kind), when, name(r.AskedBy), name(r.For), cell(r.Title), r.Channel}
	})
}

func (a *app) requestsShow() *cobra.Command {
	return a.withHub(&cobra.Command{
		Use:     "show REQUEST",
		Short:   "Show a request: what is asked, its choices, its answer",
		Example: "  parley requests show $REQUEST",
		Args:    cobra.ExactArgs(1),
	}, func(ctx context.Context, hub *v1.Client, args []string) error {
		id, err := findRequest(ctx, hub, args[0])
		if err != nil {
			return err
		}
		_, raw, err := hub.Request(ctx, id)
		if err != nil {
			return err
		}
		return a.print(raw, func(w io.Writer) error { return printIndented(w, raw) })
	})
}

func (a *app) requestsAnswer() *cobra.Command {
	var reply v1.Reply
	c := a.withHub(&cobra.Command{
		Use:     "answer REQUEST [CHOICE]",
		Short:   "Answer a request; the first answer holds",
		Example: "  parley requests answer $REQUEST approve --as parrot --note \"checked\"",
		Args:    cobra.RangeArgs(1, 2),
	}, func(ctx context.Context, hub *v1.Client, args []string) error {
		if len(args) == 2 {
			reply.Choice = args[1]
		}
		id, err := findRequest(ctx, hub, args[0])
		if err != nil {
			return err
		}
		r, err := hub.AnswerRequest(ctx, id, reply)
		if err != nil {
			return err
		}
		return a.print(r, linef("%s, with envelope %s", r.State, r.Answer.Envelope))
	})
	c.Flags().StringVar(&reply.As, "as", "", "the `NAME` or id that answers (default: the key's own, or the operator)")
	c.Flags().StringVar(&reply.Text, "text", "", "the answer in words")
	c.Flags().StringVar(&reply.Note, "note", "", "why, for those who read it later")
	c.Flags().StringVar(&reply.Digest, "digest", "", "the digest of the action that was shown; another one is refused")
	return c
}
