package main

import (
	"cmp"
	"context"
	"io"
	"net/url"

	"github.com/spf13/cobra"
)

// aghMessage has the shown fields of a message of a conversation.
type aghMessage struct {
	ID      string `json:"message_id"`
	Kind    string `json:"kind"`
	From    string `json:"peer_from"`
	To      string `json:"peer_to"`
	Work    string `json:"work_id"`
	Text    string `json:"preview_text"`
	Time    string `json:"timestamp"`
	Content struct {
		Status string `json:"status"`
		Reason string `json:"reason_code"`
		State  string `json:"state"`
	} `json:"body"`
}

// says returns a message in one cell.
func (m *aghMessage) says() string {
	switch {
	case m.Content.Reason != "":
		return m.Content.Status + " (" + m.Content.Reason + ")"
	case m.Text == "":
		return cmp.Or(m.Content.State, m.Content.Status)
	case m.Content.State != "":
		return m.Content.State + ": " + m.Text
	}
	return m.Text
}

func (a *app) aghMessages(f *conversations) *cobra.Command {
	var channel, id, before, kind, work string
	var params func() url.Values
	c := a.withNetwork(&cobra.Command{
		Use:     "messages --workspace WORKSPACE --channel CHANNEL --" + f.noun + " ID",
		Short:   "Show what was said in one of the " + f.group + ", the oldest first",
		Example: "  parley agh " + f.group + " messages --workspace ws_harbor --channel dock --" + f.noun + " " + f.id,
		Args:    cobra.NoArgs,
	}, func(ctx context.Context, n *network, _ []string) error {
		q := params()
		for name, value := range map[string]string{"before": before, "kind": kind, "work_id": work} {
			if value != "" {
				q.Set(name, value)
			}
		}
		answer, err := n.get(ctx, n.path("channels", channel, f.group, id, "messages"), q)
		if err != nil {
			return err
		}
		_, all, err := unwrap[[]aghMessage](answer, "messages")
		if err != nil {
			return err
		}
		return a.print(answer, func(w io.Writer) error { return a.writeAGHMessages(w, all) })
	})
	addConversation(c, f, &channel, &id)
	c.Flags().StringVar(&before, "before", "", "only what was said before this `ID`, the nearest")
	c.Flags().StringVar(&kind, "kind", "", "only of this kind: say, capability, receipt or trace")
	c.Flags().StringVar(&work, "work", "", "only about this work `ID`")
	params = paged(c)
	c.MarkFlagsMutuallyExclusive("before", "after")
	return c
}

func (a *app) writeAGHMessages(w io.Writer, all []aghMessage) error {
	rows := make([][]string, len(all))
	for i, m := range all {
		rows[i] = []string{cell(m.ID), cell(m.Kind), cell(m.From), brief(m.says()), orDash(m.To), orDash(m.Work), cell(m.Time)}
	}
	return a.writeColumns(w, []column{
		{"MESSAGE", fixed}, {"KIND", fixed}, {"FROM", flexible}, {"TEXT", flexible}, {"TO", wide}, {"WORK", wide}, {"TIME", wide},
	}, rows)
}
