package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	v1 "github.com/parley-hub/parley/client/v1"
	"github.com/parley-hub/parley/envelope"
)

// finding is something that works but is likely to cause trouble later.
type finding struct {
	EventType string `json:"event_type"`
	Sequence  uint64 `json:"sequence"`
	Problem   string `json:"problem"`
}

func (a *app) channelsLint() *cobra.Command {
	return a.withHub(&cobra.Command{
		Use:   "lint CHANNEL",
		Short: "Find event types in a channel that may collide with others one day",
		Long: `Find event types in a channel that may collide with others one day: custom
types without a dot, or with the prefix ag2., which is AG2's own. They are
accepted all the same.`,
		Example: "  parley channels lint $CHANNEL",
		Args:    cobra.ExactArgs(1),
	}, func(ctx context.Context, hub *v1.Client, args []string) error {
		id, err := findChannel(ctx, hub, args[0])
		if err != nil {
			return err
		}
		findings := []finding{}
		err = hub.Events(ctx, id, v1.EventQuery{}, func(ev *v1.Event) error {
			if problem := lintType(ev.Type); problem != "" {
				findings = append(findings, finding{ev.Type, ev.Sequence, problem})
			}
			return nil
		})
		if err != nil {
			return err
		}
		return a.print(map[string]any{"findings": findings}, func(w io.Writer) error {
			if len(findings) == 0 {
				_, err := fmt.Fprintln(w, "nothing found")
				return err
			}
			return table(w, func(w io.Writer) {
				for _, f := range findings {
					fmt.Fprintf(w, "#%d\t%s\t%s\n", f.Sequence, cell(f.EventType), cell(f.Problem))
				}
			})
		})
	})
}

// known are AG2's types.
var known = []string{
	envelope.TypeText, envelope.TypePacket, envelope.TypeContextSet,
	envelope.TypeInvite, envelope.TypeInviteAck, envelope.TypeInviteReject, envelope.TypeOpened, envelope.TypeClosed,
	envelope.TypeExpired, envelope.TypeExpectationViolated, envelope.WireExpectationViolated, "ag2.participant.removed",
	envelope.TypeTaskStarted, envelope.TypeTaskProgress, envelope.TypeTaskCompleted, envelope.TypeTaskFailed,
	envelope.TypeTaskExpired, envelope.TypeTaskCancelled, envelope.TypeTaskCancelRequest,
}

// lintType returns what is wrong with the name of an event type, or "".
func lintType(eventType string) string {
	switch {
	case slices.Contains(known, eventType):
		return ""
	case strings.HasPrefix(eventType, "ag2."):
		return "likely collision: the prefix ag2. is AG2's own; use one of yours, like myapp." + strings.TrimPrefix(eventType, "ag2.")
	case !strings.Contains(eventType, "."):
		return "likely collision: no prefix; use one of yours, like myapp." + eventType
	}
	return ""
}
