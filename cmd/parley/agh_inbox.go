package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/spf13/cobra"

	v1 "github.com/parley-hub/parley/client/v1"
)

// aghWaiting has the shown fields of a message that waits.
type aghWaiting struct {
	ID     string `json:"id"`
	Kind   string `json:"kind"`
	From   string `json:"from"`
	Thread string `json:"thread_id"`
	Direct string `json:"direct_id"`
	Work   string `json:"work_id"`
	Body   struct {
		Text    string `json:"text"`
		Message string `json:"message"`
		State   string `json:"state"`
		Status  string `json:"status"`
		Reason  string `json:"reason_code"`
	} `json:"body"`
}

// says returns a message in one cell.
func (m *aghWaiting) says() string {
	shown := aghMessage{Text: m.Body.Text + m.Body.Message}
	shown.Content.State, shown.Content.Status, shown.Content.Reason = m.Body.State, m.Body.Status, m.Body.Reason
	return shown.says()
}

func (a *app) aghInbox() *cobra.Command {
	var session, channel string
	var wait time.Duration
	c := a.withNetwork(&cobra.Command{
		Use:   "inbox --workspace WORKSPACE --session SESSION",
		Short: "List what waits for a hosted peer, the oldest first",
		Long: `List what waits for a hosted peer, the oldest first. Nothing is taken away:
parley agh done says that a message is finished.`,
		Example: "  parley agh inbox --workspace ws_harbor --session $SESSION",
		Args:    cobra.NoArgs,
	}, func(ctx context.Context, n *network, _ []string) error {
		q := url.Values{"session_id": {session}}
		if channel != "" {
			q.Set("channel", channel)
		}
		if wait != 0 {
			q.Set("wait", wait.String())
		}
		answer, err := n.await(ctx, n.path("inbox"), q)
		if err != nil {
			return err
		}
		raw, all, err := unwrap[[]aghWaiting](answer, "messages")
		if err != nil {
			return err
		}
		return a.print(raw, func(w io.Writer) error { return a.writeWaiting(w, all) })
	})
	c.Flags().StringVar(&session, "session", "", "the session's `ID`, as parley agh join printed it")
	c.Flags().StringVar(&channel, "channel", "", "only of this `CHANNEL`")
	c.Flags().DurationVar(&wait, "wait", 0, "wait so long for a message if there is none, at most 60s")
	require(c, "session")
	return c
}

// await is get without a timeout: the hub answers when it has something.
func (n *network) await(ctx context.Context, path string, q url.Values) (json.RawMessage, error) {
	body, err := n.hub.Download(ctx, path+"?"+q.Encode())
	if err != nil {
		return nil, err
	}
	defer body.Close()
	return io.ReadAll(io.LimitReader(body, v1.MaxAnswer))
}

func (a *app) writeWaiting(w io.Writer, all []aghWaiting) error {
	if len(all) == 0 {
		_, err := fmt.Fprintln(w, "Nothing waits.")
		return err
	}
	rows := make([][]string, len(all))
	for i, m := range all {
		rows[i] = []string{cell(m.ID), cell(m.Kind), cell(m.From), brief(m.says()), orDash(m.Thread + m.Direct), orDash(m.Work)}
	}
	return a.writeColumns(w, []column{{"MESSAGE", fixed}, {"KIND", fixed}, {"FROM", flexible}, {"TEXT", flexible}, {"IN", wide}, {"WORK", wide}}, rows)
}

func (a *app) aghDone() *cobra.Command {
	var session string
	c := a.withNetwork(&cobra.Command{
		Use:     "done MESSAGE --workspace WORKSPACE --session SESSION",
		Short:   "Say that a message that waits for a hosted peer is finished",
		Example: "  parley agh done $MESSAGE --workspace ws_harbor --session $SESSION",
		Args:    cobra.ExactArgs(1),
	}, func(ctx context.Context, n *network, args []string) error {
		path := n.path("inbox", args[0], "done") + "?" + url.Values{"session_id": {session}}.Encode()
		if err := n.hub.Call(ctx, http.MethodPost, path, nil, nil); err != nil {
			return err
		}
		return a.print(map[string]string{"done": args[0]}, line("done "+cell(args[0])))
	})
	c.Flags().StringVar(&session, "session", "", "the session's `ID`, as parley agh join printed it")
	require(c, "session")
	return c
}
