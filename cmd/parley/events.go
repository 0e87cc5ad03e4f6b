package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"

	"github.com/parley-hub/parley/client/hpd"
	v1 "github.com/parley-hub/parley/client/v1"
	"github.com/parley-hub/parley/dialect/hpd/wire"
)

func (a *app) events() *cobra.Command {
	var after string
	var follow bool
	c := a.withHub(&cobra.Command{
		Use:   "events SESSION [BRANCH]",
		Short: "Print the events of an HPD branch, and follow it",
		Long: `Print the events of an HPD branch, one on each line: the stored ones, and with
--follow what comes, also what is shown live and not stored. The BRANCH is main
unless it is given.

A hub that restarts is waited for: no stored event is missed or comes twice. With
-o json each line is the event as the hub sent it, and a stored one also has its
position, which --after takes.`,
		Example: `  parley events $SESSION
  parley events $SESSION main --follow --after 0`,
		Args: cobra.RangeArgs(1, 2),
	}, func(ctx context.Context, hub *v1.Client, args []string) error {
		ctx, stop := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM)
		defer stop()
		at := wire.Scope{Session: args[0], Branch: wire.MainBranch}
		if len(args) == 2 {
			at.Branch = args[1]
		}
		client := hpd.New(hub)
		if !follow {
			return client.History(ctx, at, after, func(event jsontext.Value) error { return a.printEvent("", event) })
		}
		if _, _, err := client.Branch(ctx, at); err != nil {
			return err // a stream would wait for a hub that is not there
		}
		return client.Follow(ctx, at, after, a.printEvent)
	})
	c.Flags().BoolVar(&follow, "follow", false, "stay, and print what comes")
	c.Flags().StringVar(&after, "after", "", "begin after this `POSITION` or sequence number (default: the start)")
	return c
}

// printEvent prints one event of a branch. The position is empty if the event is not
// stored or only its number is known.
func (a *app) printEvent(position string, event jsontext.Value) error {
	if a.output != "json" {
		return eventLine(cleanWriter{a.out}, event)
	}
	out := event.Clone()
	if position != "" && len(out) > 2 {
		quoted, err := jsontext.AppendQuote(nil, position)
		if err != nil {
			return err
		}
		out = append(append(append(out[:len(out)-1], `,"position":`...), quoted...), '}')
	}
	_, err := a.out.Write(append(out, '\n'))
	return err
}

// readable has the members of events that people read.
type readable struct {
	Type           string    `json:"type"`
	SequenceNumber uint64    `json:"sequenceNumber"`
	Timestamp      time.Time `json:"timestamp"`
	MessageID      string    `json:"messageId"`
	CallID         string    `json:"callId"`
	Name           string    `json:"name"`
	Role           string    `json:"role"`
	Text           string    `json:"text"`
	Message        string    `json:"message"`
	ErrorMessage   string    `json:"errorMessage"`
	Question       string    `json:"question"`
	FunctionName   string    `json:"functionName"`
	ToolName       string    `json:"toolName"`
	ArgsJSON       string    `json:"argsJson"`
	Reason         string    `json:"reason"`
	RuntimeRunID   string    `json:"runtimeRunId"`
	Cancelled      bool      `json:"cancelled"`
	Result         struct {
		Text string `json:"text"`
	} `json:"result"`
}

// eventLine prints an event as one line for a person.
func eventLine(w io.Writer, event jsontext.Value) error {
	var e readable
	if err := json.Unmarshal(event, &e); err != nil {
		_, err := fmt.Fprintln(w, cell(string(event))) // not one of the built-in types
		return err
	}
	if e.Type == wire.StreamGap.EventType(wire.StreamGap{}) {
		_, err := fmt.Fprintf(w, "-- something is missing here: %s\n", cell(e.Reason))
		return err
	}
	number := "live"
	if e.SequenceNumber > 0 {
		number = fmt.Sprint(e.SequenceNumber)
	}
	if e.Cancelled {
		e.Reason = "cancelled"
	}
	what := strings.Join(strings.Fields(strings.Join([]string{
		cmp.Or(e.MessageID, e.CallID, e.RuntimeRunID), e.Role, cmp.Or(e.Name, e.FunctionName, e.ToolName),
	}, " ")), " ")
	said := cmp.Or(e.Text, e.Result.Text, e.ErrorMessage, e.Message, e.Question, e.ArgsJSON, e.Reason)
	if said != "" {
		said = ": " + said
	}
	_, err := fmt.Fprintf(w, "%s %5s  %s %s%s\n", e.Timestamp.Local().Format("15:04:05"), number, cell(e.Type), cell(what), cell(said))
	return err
}

// jsonText returns a value as JSON on one line.
func jsonText(value any) (string, error) {
	data, err := json.Marshal(value, json.Deterministic(true))
	return string(data), err
}
