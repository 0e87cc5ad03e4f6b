package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	v1 "github.com/parley-hub/parley/client/v1"
	"github.com/parley-hub/parley/message"
	"github.com/parley-hub/parley/message/provider"
	"github.com/parley-hub/parley/message/provider/anthropic"
	"github.com/parley-hub/parley/message/provider/gemini"
	"github.com/parley-hub/parley/message/provider/openai"
	"github.com/parley-hub/parley/message/stream"
)

// canonicalForm is the value of --to that names no provider.
const canonicalForm = "canonical"

// maxConversation bounds the messages that are held for a provider, which needs the
// whole conversation.
const maxConversation = 100_000

// forms are the providers of --to, with the functions that make requests to them.
var forms = map[string]func([]message.Envelope, provider.Options) provider.Request{
	"openai-chat":      openai.Chat,
	"openai-responses": openai.Responses,
	"anthropic":        anthropic.Messages,
	"gemini":           gemini.Contents,
}

// formNames lists the values of --to.
func formNames() []string {
	return slices.Sorted(func(yield func(string) bool) {
		if !yield(canonicalForm) {
			return
		}
		maps.Keys(forms)(yield)
	})
}

func (a *app) channelsMessages() *cobra.Command {
	var as, to string
	c := a.withHub(&cobra.Command{
		Use:   "messages CHANNEL --as AGENT",
		Short: "Show a channel as the messages that one of its participants would show a model",
		Long: `Show a channel as the messages that one of its participants would show a model:
what it said is the assistant's, what others said is the user's under their
names. They are canonical messages, one a line, or with --to a provider's
request; what that provider cannot be told is said on standard error.`,
		Example: "  parley channels messages $CHANNEL --as alice --to anthropic",
		Args:    cobra.ExactArgs(1),
	}, func(ctx context.Context, hub *v1.Client, args []string) error {
		write, known := forms[to]
		if !known && to != canonicalForm {
			return usageError("--to %s: the form is %s", to, strings.Join(formNames(), ", "))
		}
		id, err := findChannel(ctx, hub, args[0])
		if err != nil {
			return err
		}
		q := url.Values{}
		if as != "" {
			q.Set("as", as)
		}
		var raw json.RawMessage
		path := "/v1/channels/" + url.PathEscape(id) + "/messages?" + q.Encode()
		if err := hub.Call(ctx, http.MethodGet, path, nil, &raw); err != nil {
			return err
		}
		var page struct {
			Messages []json.RawMessage `json:"messages"`
		}
		if err := json.Unmarshal(raw, &page); err != nil {
			return err
		}
		if !known {
			return a.print(raw, func(w io.Writer) error { return writeLines(w, page.Messages) })
		}
		envelopes := make([]message.Envelope, 0, len(page.Messages))
		for _, text := range page.Messages {
			e, err := message.NormalizeJSON(text)
			if err != nil {
				return err
			}
			envelopes = append(envelopes, e)
		}
		request := write(envelopes, provider.Options{Speakers: true})
		return a.printRequest(request, func(n provider.Note) string { return n.String() })
	})
	c.Flags().StringVar(&as, "as", "", "the `NAME` or id of the participant (default: who opened the channel)")
	c.Flags().StringVar(&to, "to", canonicalForm, "form to write: "+strings.Join(formNames(), ", "))
	return c
}

func writeLines(w io.Writer, lines []json.RawMessage) error {
	for _, line := range lines {
		if _, err := fmt.Fprintf(w, "%s\n", line); err != nil {
			return err
		}
	}
	return nil
}

// printRequest writes a request and, separately, its notes.
func (a *app) printRequest(request provider.Request, say func(provider.Note) string) error {
	body, err := request.Body.MarshalJSON()
	if err != nil {
		return err
	}
	for _, n := range request.Notes {
		fmt.Fprintln(a.err, "note:", say(n))
	}
	_, err = fmt.Fprintf(a.out, "%s\n", body)
	return err
}

// placed is a conversation with the places of its messages.
type placed struct {
	messages []message.Envelope
	places   []stream.Place
}

func (l *placed) where(n provider.Note) stream.Place {
	if n.Index < 0 || n.Index >= len(l.places) {
		return stream.Place{}
	}
	return l.places[n.Index]
}

// projectTo writes a conversation for a provider, or only reports what is refused and
// what has no equivalent.
func (a *app) projectTo(ctx context.Context, args []string, check bool,
	write func([]message.Envelope, provider.Options) provider.Request,
) error {
	in, err := a.open(args)
	if err != nil {
		return err
	}
	defer in.Close()
	talk, refused, err := a.collect(ctx, in, check)
	if err != nil {
		return err
	}
	request := write(talk.messages, provider.Options{})
	if !check {
		return a.printRequest(request, func(n provider.Note) string {
			return fmt.Sprintf("%v: %s: %s", talk.where(n), n.Kind, n.Text)
		})
	}
	for _, n := range request.Notes {
		row := struct {
			stream.Place
			Kind string `json:"kind"`
			Code string `json:"code"`
			Text string `json:"text"`
		}{talk.where(n), string(n.Kind), n.Code, n.Text}
		err := a.print(row, linef("%v: %s: %s", row.Place, row.Kind, row.Text))
		if err != nil {
			return err
		}
	}
	return a.checked(stream.Stats{Messages: len(talk.messages), Refused: refused})
}

// collect reads a whole conversation. It ends at the first refused message, unless
// all are to be reported.
func (a *app) collect(ctx context.Context, in io.Reader, report bool) (talk *placed, refused int, err error) {
	talk = &placed{}
	for item, err := range stream.Messages(ctx, in, stream.Options{}) {
		switch {
		case err != nil:
			return nil, 0, err
		case item.Err != nil && !report:
			return nil, 0, &stream.Problem{Place: item.Place, Err: item.Err}
		case item.Err != nil:
			refused++
			if err := a.refusedAt(item.Place, item.Err); err != nil {
				return nil, 0, err
			}
		case len(talk.messages) == maxConversation:
			return nil, 0, fmt.Errorf("more than %d messages, which is the limit of one conversation", maxConversation)
		default:
			talk.messages = append(talk.messages, item.Envelope)
			talk.places = append(talk.places, item.Place)
		}
	}
	return talk, refused, nil
}
