package main

import (
	"cmp"
	"context"
	"encoding/json"

	"github.com/spf13/cobra"

	v1 "github.com/parley-hub/parley/client/v1"
	"github.com/parley-hub/parley/fault"
	"github.com/parley-hub/parley/internal/screen/join"
)

func (a *app) send() *cobra.Command {
	var as, eventType, data, key, cause string
	var to []string
	c := a.withHub(&cobra.Command{
		Use:   "send CHANNEL [TEXT] --as NAME",
		Short: "Send an envelope into a channel",
		Long: `Send an envelope into a channel: a text, or with --type and --payload anything.

Out of turn is refused, and the refusal says whose turn it is. With --key the
same command can be repeated safely: it is sent once.`,
		Example: "  parley send $CHANNEL \"How are you?\" --as alice",
		Args:    cobra.RangeArgs(1, 2),
	}, func(ctx context.Context, hub *v1.Client, args []string) error {
		post := v1.Posting{Sender: as, Key: key, Cause: cause, Audience: to}
		if data != "" {
			var object map[string]json.RawMessage
			if err := json.Unmarshal([]byte(data), &object); err != nil || object == nil {
				return usageError("--payload is not a JSON object; it looks like '{\"path\":\"README.md\"}'")
			}
		}
		switch {
		case len(args) == 2 && eventType == "" && data == "":
			post.Text = &args[1]
		case len(args) == 1 && eventType != "":
			post.Type, post.Data = eventType, json.RawMessage(cmp.Or(data, "{}"))
		case len(args) == 2:
			return usageError("a text and --type or --payload were given; say one thing: a text, or --type with --payload")
		case data != "":
			return usageError("--type is missing: --payload needs the event type that it belongs to, such as --type myapp.review_request")
		default:
			return usageError("there is nothing to say: parley send CHANNEL TEXT --as NAME, or --type and --payload instead of a text")
		}
		id, err := findChannel(ctx, hub, args[0])
		if err != nil {
			return err
		}
		sent, err := hub.Send(ctx, id, post)
		if fault.CodeOf(err) == fault.AccessDenied && as != "" {
			// Who is in the channel says more than the adapter's refusal.
			if me, asked := hub.Agent(ctx, as); asked == nil {
				if _, outside := join.Open(ctx, hub, me, id); outside != nil {
					err = outside
				}
			}
		}
		if err != nil {
			return err
		}
		return a.print(sent, line("sent", sent.ID))
	})
	c.Flags().StringVar(&as, "as", "", "the `NAME` or id that sends")
	c.Flags().StringVar(&eventType, "type", "", "an event type of your own, like myapp.review_request")
	c.Flags().StringVar(&data, "payload", "", "what it carries, as a JSON object")
	c.Flags().StringArrayVar(&to, "to", nil, "only for this `NAME` or id; may be repeated")
	c.Flags().StringVar(&key, "key", "", "an idempotency key: repeating the command sends once")
	c.Flags().StringVar(&cause, "answers", "", "the `ENVELOPE` that this one answers")
	return c
}
