package main

import (
	"context"
	"encoding/json"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/parley-hub/parley/dialect/agh/wire"
)

// aghSending is a message in the form of AGH's HTTP interface.
type aghSending struct {
	Session   string          `json:"session_id"`
	Channel   string          `json:"channel"`
	Kind      wire.Kind       `json:"kind"`
	Surface   wire.Surface    `json:"surface,omitempty"`
	Thread    string          `json:"thread_id,omitempty"`
	Direct    string          `json:"direct_id,omitempty"`
	To        string          `json:"to,omitempty"`
	Work      string          `json:"work_id,omitempty"`
	ReplyTo   string          `json:"reply_to,omitempty"`
	Trace     string          `json:"trace_id,omitempty"`
	Causation string          `json:"causation_id,omitempty"`
	ExpiresAt *int64          `json:"expires_at,omitempty"`
	ID        string          `json:"id,omitempty"`
	Ext       json.RawMessage `json:"ext,omitempty"`
	Body      json.RawMessage `json:"body"`
}

func (a *app) aghSend() *cobra.Command {
	var s aghSending
	var body, ext, expires string
	var c *cobra.Command
	c = a.withNetwork(&cobra.Command{
		Use:   "send --workspace WORKSPACE --session SESSION --channel CHANNEL --body JSON",
		Short: "Send a message for a hosted peer",
		Long: `Send a message for a hosted peer. It is durable when the command returns, and is
then published. With --id the same command can be repeated safely: it is sent
once.`,
		Example: `  parley agh send --workspace ws_harbor --session $SESSION --channel dock --surface thread --thread thread_tide_table --body '{"text":"Berth 4 is free."}'`,
		Args:    cobra.NoArgs,
	}, func(ctx context.Context, n *network, _ []string) error {
		s.Body, s.Ext = json.RawMessage(body), json.RawMessage(ext)
		err := noEmptyFlag(c)
		if err == nil {
			err = s.check()
		}
		if err != nil {
			return err
		}
		if s.ExpiresAt, err = unixTime(expires); err != nil {
			return err
		}
		answer, err := n.post(ctx, n.path("send"), &s)
		if err != nil {
			return err
		}
		raw, sent, err := unwrap[aghSending](answer, "message")
		if err != nil {
			return err
		}
		return a.print(raw, line("sent", cell(sent.ID)))
	})
	f := c.Flags()
	f.StringVar(&s.Session, "session", "", "the session's `ID`, as parley agh join printed it")
	f.StringVar(&s.Channel, "channel", "", "the `CHANNEL` that it is joined to")
	f.StringVar((*string)(&s.Kind), "kind", string(wire.Say), "whois, say, capability, receipt or trace")
	f.StringVar(&body, "body", "", "the kind's body, as a `JSON` object")
	f.StringVar((*string)(&s.Surface), "surface", "", "where: thread or direct")
	f.StringVar(&s.Thread, "thread", "", "the thread's `ID`")
	f.StringVar(&s.Direct, "direct", "", "the direct room's `ID`")
	f.StringVar(&s.To, "to", "", "the peer `ID` that it is for")
	f.StringVar(&s.Work, "work", "", "the work's `ID`")
	f.StringVar(&s.ReplyTo, "reply-to", "", "the message `ID` that this one answers")
	f.StringVar(&s.Trace, "trace-id", "", "an `ID` that goes with everything that belongs together")
	f.StringVar(&s.Causation, "causation-id", "", "the `ID` of what caused this message")
	f.StringVar(&expires, "expires-at", "", "the `TIME` from which it is refused: Unix seconds or RFC 3339")
	f.StringVar(&s.ID, "id", "", "the message's own `ID` (default a new one)")
	f.StringVar(&ext, "ext", "", "extension members, as a `JSON` object")
	require(c, "session", "channel", "body")
	c.MarkFlagsMutuallyExclusive("thread", "direct")
	return c
}

// noEmptyFlag refuses a flag that is given without a value, such as --to "$PEER" where
// PEER is not set: without it, the message would be for everybody.
func noEmptyFlag(c *cobra.Command) error {
	var err error
	c.Flags().Visit(func(f *pflag.Flag) {
		if err == nil && strings.TrimSpace(f.Value.String()) == "" {
			err = usageError("--%s is empty; leave it out if there is none", f.Name)
		}
	})
	return err
}

// claimToken matches a secret of AGH's task service, which must not be in a message.
var claimToken = regexp.MustCompile(`agh_claim_[A-Za-z0-9_-]+|"claim_token"`)

// check refuses a message that no network accepts.
func (s *aghSending) check() error {
	contained := s.Thread != "" || s.Direct != ""
	switch {
	case string(s.Kind) == string(wire.Direct):
		return usageError("--kind direct: that is a surface; say --kind say --surface direct")
	case !s.Kind.Known():
		return usageError("--kind %s: it is whois, say, capability, receipt or trace", s.Kind)
	case !s.Kind.Conversation() && (s.Surface != "" || contained || s.Work != ""):
		return usageError("--kind %s is in no conversation: leave --surface, --thread, --direct and --work out", s.Kind)
	case s.Kind.Conversation() && s.Surface == "":
		return usageError("--surface is missing; it is thread or direct")
	case s.Kind != wire.Say && s.Kind.Conversation() && s.Work == "":
		return usageError("--work is missing; --kind %s is about work", s.Kind)
	case claimToken.Match(s.Body) || claimToken.Match(s.Ext):
		return usageError("a claim token is a secret and must not be in a message")
	case !isObject(s.Body):
		return usageError("--body is not a JSON object; it looks like '{\"text\":\"Berth 4 is free.\"}'")
	case len(s.Ext) > 0 && !isObject(s.Ext):
		return usageError("--ext is not a JSON object; it looks like '{\"harbor.shift\":\"night\"}'")
	}
	return nil
}

func isObject(text json.RawMessage) bool {
	var members map[string]json.RawMessage
	return json.Unmarshal(text, &members) == nil && members != nil
}

// unixTime reads Unix seconds or RFC 3339; nil: the text is empty.
func unixTime(text string) (*int64, error) {
	if text == "" {
		return nil, nil
	}
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return &n, nil
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return nil, usageError("--expires-at %s: it is Unix seconds or RFC 3339, like 2026-04-16T19:00:00Z", text)
	}
	return new(t.Unix()), nil
}
