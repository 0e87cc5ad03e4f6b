package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"strconv"

	"github.com/spf13/cobra"
)

// aghConversation has the shown fields of a thread or a direct room.
type aghConversation struct {
	Thread   string `json:"thread_id"`
	Direct   string `json:"direct_id"`
	PeerA    string `json:"peer_a"`
	PeerB    string `json:"peer_b"`
	Title    string `json:"title"`
	OpenedBy string `json:"opened_by_peer_id"`
	Opened   string `json:"opened_at"`
	Last     string `json:"last_activity_at"`
	Messages int    `json:"message_count"`
	Speakers int    `json:"participant_count"`
	Work     int    `json:"open_work_count"`
	Preview  string `json:"last_message_preview"`
}

// conversations has what differs between the commands of threads and of direct rooms.
type conversations struct {
	group, noun, id string // "threads", "thread", and the flag's and the example's id
	columns         []column
	row             func(c *aghConversation) []string
}

var (
	aghThreadForm = conversations{
		group: "threads", noun: "thread", id: "thread_tide_table",
		columns: []column{{"THREAD", flexible}, {"MESSAGES", fixed}, {"SPEAKERS", fixed}, {"OPEN WORK", fixed}, {"LAST", fixed}, {"TITLE", flexible}},
		row: func(c *aghConversation) []string {
			return []string{cell(c.Thread), strconv.Itoa(c.Messages), strconv.Itoa(c.Speakers), strconv.Itoa(c.Work), agoText(c.Last), brief(c.Title)}
		},
	}
	aghDirectForm = conversations{
		group: "directs", noun: "direct", id: "$DIRECT",
		columns: []column{{"DIRECT ROOM", fixed}, {"PEERS", flexible}, {"LAST", fixed}, {"MESSAGES", wide}, {"OPEN WORK", wide}, {"LAST MESSAGE", wide}},
		row: func(c *aghConversation) []string {
			return []string{cell(c.Direct), cell(c.PeerA + ", " + c.PeerB), agoText(c.Last), strconv.Itoa(c.Messages), strconv.Itoa(c.Work), brief(c.Preview)}
		},
	}
)

func (a *app) writeConversations(w io.Writer, f *conversations, all []aghConversation) error {
	rows := make([][]string, len(all))
	for i := range all {
		rows[i] = f.row(&all[i])
	}
	return a.writeColumns(w, f.columns, rows)
}

func (a *app) aghThreads() *cobra.Command {
	f := &aghThreadForm
	return group("threads", "List, show and read the threads of a channel",
		a.aghList(f), a.aghShow(f), a.aghMessages(f))
}

func (a *app) aghDirects() *cobra.Command {
	f := &aghDirectForm
	return group("directs", "List, open, show and read the direct rooms of a channel",
		a.aghList(f), a.aghResolve(), a.aghShow(f), a.aghMessages(f))
}

// paged adds --limit and --after, and returns a function that reads them.
func paged(c *cobra.Command) func() url.Values {
	limit := c.Flags().Int("limit", 50, "at most so many; 0 is all")
	after := c.Flags().String("after", "", "go on after this `ID`")
	return func() url.Values {
		q := url.Values{}
		if *limit != 0 {
			q.Set("limit", strconv.Itoa(*limit))
		}
		if *after != "" {
			q.Set("after", *after)
		}
		return q
	}
}

// full reports whether a page has as many entries as requested, so that there may be
// more.
func full(q url.Values, n int) bool { return n > 0 && q.Get("limit") == strconv.Itoa(n) }

func (a *app) aghList(f *conversations) *cobra.Command {
	var channel, peer string
	var params func() url.Values
	var c *cobra.Command
	c = a.withNetwork(&cobra.Command{
		Use:     "list --workspace WORKSPACE --channel CHANNEL",
		Short:   "List the " + f.group + " of a channel, the newest activity first",
		Example: "  parley agh " + f.group + " list --workspace ws_harbor --channel dock",
		Args:    cobra.NoArgs,
	}, func(ctx context.Context, n *network, _ []string) error {
		q := params()
		if peer != "" {
			q.Set("peer_id", peer)
		}
		answer, err := n.get(ctx, n.path("channels", channel, f.group), q)
		if err != nil {
			return err
		}
		_, all, err := unwrap[[]aghConversation](answer, f.group)
		if err != nil {
			return err
		}
		return a.print(answer, func(w io.Writer) error {
			if err := a.writeConversations(w, f, all); err != nil || !full(q, len(all)) {
				return err
			}
			last := all[len(all)-1]
			_, err := fmt.Fprintf(w, "\nMore: parley agh %s list%s --after %s\n", f.group, given(c), last.Thread+last.Direct)
			return err
		})
	})
	c.Flags().StringVar(&channel, "channel", "", "the `CHANNEL` of the workspace")
	require(c, "channel")
	if f == &aghDirectForm {
		c.Flags().StringVar(&peer, "peer", "", "only those of this peer `ID`")
	}
	params = paged(c)
	return c
}

func (a *app) aghShow(f *conversations) *cobra.Command {
	var channel, id string
	c := a.withNetwork(&cobra.Command{
		Use:     "show --workspace WORKSPACE --channel CHANNEL --" + f.noun + " ID",
		Short:   "Show one of the " + f.group + " of a channel",
		Example: "  parley agh " + f.group + " show --workspace ws_harbor --channel dock --" + f.noun + " " + f.id,
		Args:    cobra.NoArgs,
	}, func(ctx context.Context, n *network, _ []string) error {
		answer, err := n.get(ctx, n.path("channels", channel, f.group, id), nil)
		if err != nil {
			return err
		}
		return a.printConversation(f, answer)
	})
	addConversation(c, f, &channel, &id)
	return c
}

// printConversation prints an answer that is one thread or direct room.
func (a *app) printConversation(f *conversations, answer json.RawMessage) error {
	_, one, err := unwrap[aghConversation](answer, f.noun)
	if err != nil {
		return err
	}
	return a.print(answer, func(w io.Writer) error { return a.writeConversations(w, f, []aghConversation{one}) })
}

// addConversation adds the flags that name a thread or a direct room.
func addConversation(c *cobra.Command, f *conversations, channel, id *string) {
	c.Flags().StringVar(channel, "channel", "", "the `CHANNEL` of the workspace")
	c.Flags().StringVar(id, f.noun, "", "the `ID` of the "+f.noun)
	require(c, "channel", f.noun)
}

func (a *app) aghResolve() *cobra.Command {
	var session, channel, peer string
	c := a.withNetwork(&cobra.Command{
		Use:     "resolve --workspace WORKSPACE --channel CHANNEL --session SESSION --peer PEER",
		Short:   "Find the direct room of a session's peer and another, opened if it is not",
		Example: "  parley agh directs resolve --workspace ws_harbor --channel dock --session $SESSION --peer tug.s02",
		Args:    cobra.NoArgs,
	}, func(ctx context.Context, n *network, _ []string) error {
		answer, err := n.post(ctx, n.path("channels", channel, "directs", "resolve"), map[string]string{"session_id": session, "peer_id": peer})
		if err != nil {
			return err
		}
		return a.printConversation(&aghDirectForm, answer)
	})
	c.Flags().StringVar(&session, "session", "", "the session's `ID`, as parley agh join printed it")
	c.Flags().StringVar(&channel, "channel", "", "the `CHANNEL` of the workspace")
	c.Flags().StringVar(&peer, "peer", "", "the other peer's `ID`")
	require(c, "session", "channel", "peer")
	return c
}
