package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/url"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	v1 "github.com/parley-hub/parley/client/v1"
	"github.com/parley-hub/parley/fault"
)

func (a *app) audit() *cobra.Command {
	var kind, channel, agent, since, until, after string
	var limit int
	var follow bool
	var c *cobra.Command
	c = a.withHub(&cobra.Command{
		Use:   "audit",
		Short: "Read the audit, or follow it",
		Example: `  parley audit --kind channel_closed
  parley audit --follow`,
		Args: cobra.NoArgs,
	}, func(ctx context.Context, hub *v1.Client, _ []string) error {
		q := url.Values{}
		for name, value := range map[string]string{"kind": kind, "channel": channel, "agent": agent, "since": since, "until": until} {
			if value != "" {
				q.Set(name, value)
			}
		}
		if err := nameChannel(ctx, hub, q); err != nil {
			return err
		}
		if follow {
			if err := checkAuditKind(ctx, hub, kind); err != nil {
				return err
			}
			ctx, stop := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM)
			defer stop()
			return hub.FollowAudit(ctx, q, after, func(f v1.Frame) error {
				if f.Name == v1.GapFrame {
					_, err := fmt.Fprintf(a.out, "{\"gap\":%s}\n", f.Data)
					return err
				}
				return a.auditLine(f.Data)
			})
		}
		q.Set("limit", strconv.Itoa(limit))
		if after != "" {
			q.Set("after", after)
		}
		page, err := firstPage(ctx, q, hub.Audit)
		if err != nil {
			return err
		}
		if len(page.Items) == 0 && page.Next == "" {
			if err := checkAuditKind(ctx, hub, kind); err != nil {
				return err
			}
		}
		return a.print(page.Raw, func(io.Writer) error {
			if len(page.Items) == 0 && page.Next == "" {
				_, err := fmt.Fprintln(a.err, "There are no such records.")
				return err
			}
			for _, record := range page.Items {
				if err := a.auditLine(record); err != nil {
					return err
				}
			}
			if page.Next != "" {
				_, err := fmt.Fprintf(a.err, "\nMore: parley audit%s --after %s\n", given(c), page.Next)
				return err
			}
			return nil
		})
	})
	f := c.Flags()
	f.StringVar(&kind, "kind", "", "only of this kind, like channel_closed")
	f.StringVar(&channel, "channel", "", "only about this channel")
	f.StringVar(&agent, "agent", "", "only about this `NAME` or id")
	f.StringVar(&since, "since", "", "only from this time on, like 2026-03-09T10:15:42Z")
	f.StringVar(&until, "until", "", "only before this time")
	f.StringVar(&after, "after", "", "go on after this one")
	f.IntVar(&limit, "limit", 50, "at most so many")
	f.BoolVar(&follow, "follow", false, "stay, and print what comes")
	return c
}

// hubAuditKinds are the kinds of the records that the hub and its dialects write.
var hubAuditKinds = []string{
	"acted_for", "agent_registered", "agent_unregistered", "agh_message", "agh_trust", "auth_failed", "channel_closed", "channel_created",
	"channel_deleted", "channel_expired", "channel_imported", "channel_log_long", "content_dropped", "expectation_violated", "home_deleted",
	"key_added", "key_revoked", "keys_imported", "operator_rule_set", "request_ended", "resume_set", "rule_set", "session_ended", "session_started",
	"skill_set", "task_terminated", "turn_failed",
}

// checkAuditKind refuses a kind that no record has. A program that embeds a hub may
// write other kinds: those that the audit holds are accepted.
func checkAuditKind(ctx context.Context, hub *v1.Client, kind string) error {
	if kind == "" || slices.Contains(hubAuditKinds, kind) {
		return nil
	}
	page, err := firstPage(ctx, url.Values{"kind": {kind}, "limit": {"1"}}, hub.Audit)
	if err != nil || len(page.Items) > 0 || page.Next != "" {
		return err
	}
	known, err := auditKinds(ctx, hub)
	if err != nil {
		return err
	}
	return fault.New(fault.Invalid, "the kind %q is unknown; it is one of %s", kind, strings.Join(known, ", "))
}

// auditLine prints a record: in words on a terminal or with -o text, else as JSON.
func (a *app) auditLine(record json.RawMessage) error {
	var fields map[string]json.RawMessage
	if a.output == "json" || !a.outputGiven && !isTerminal(a.out) || json.Unmarshal(record, &fields) != nil {
		_, err := fmt.Fprintf(a.out, "%s\n", record)
		return err
	}
	var at, kind string
	_ = json.Unmarshal(fields["at"], &at)
	_ = json.Unmarshal(fields["kind"], &kind)
	delete(fields, "at")
	delete(fields, "kind")
	var rest []string
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		rest = append(rest, name+"="+strings.Trim(string(fields[name]), `"`))
	}
	_, err := fmt.Fprintf(cleanWriter{a.out}, "%s  %-22s  %s\n", cell(at), cell(kind), cell(strings.Join(rest, "  ")))
	return err
}
