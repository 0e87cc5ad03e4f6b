package main

import (
	"context"
	"encoding/json"

	"github.com/spf13/cobra"

	v1 "github.com/parley-hub/parley/client/v1"
)

func (a *app) agentsRule() *cobra.Command {
	var rule v1.OperatorRule
	var remove bool
	var c *cobra.Command
	c = a.withHub(&cobra.Command{
		Use:   "rule NAME",
		Short: "Set the operator's rule for an identity, which its own cannot exceed",
		Long: `Set the operator's rule for an identity, by name or id. An identity sets a rule
of its own; what holds is the stricter of both, part by part. The flags replace
the operator's rule as a whole: a part without a flag has no ceiling. Without
any flag the rule is shown.`,
		Example: `  parley agents rule alice --rate 60 --max-pending 100
  parley agents rule alice --remove`,
		Args: cobra.ExactArgs(1),
	}, func(ctx context.Context, hub *v1.Client, args []string) error {
		given, set := 0, &rule
		for name := range ruleFlags {
			if c.Flags().Changed(name) {
				given++
			}
		}
		var ag *v1.Agent
		var err error
		switch {
		case remove && given > 0:
			return usageError("--remove removes the whole rule; give it without other flags")
		case remove:
			ag, err = hub.SetAgentRule(ctx, args[0], nil)
		case given > 0:
			ag, err = hub.SetAgentRule(ctx, args[0], set)
		default:
			ag, err = hub.Agent(ctx, args[0])
		}
		if err != nil {
			return err
		}
		return a.print(ag.Raw, linef("%s  %s", cell(ag.Passport.Name), ruleText(ag.OperatorRule)))
	})
	f := c.Flags()
	f.Int64Var(&rule.Limits.Rate.PerMinute, "rate", 0, ruleFlags["rate"])
	f.Int64Var(&rule.Limits.Rate.Burst, "burst", 0, ruleFlags["burst"])
	f.Int64Var(&rule.Limits.Inbox.MaxPending, "max-pending", 0, ruleFlags["max-pending"])
	f.Int64Var(&rule.Limits.MaxConcurrentChannels, "max-channels", 0, ruleFlags["max-channels"])
	f.Int64Var(&rule.Limits.MaxConcurrentTasks, "max-tasks", 0, ruleFlags["max-tasks"])
	f.Int64Var(&rule.Limits.DelegationDepth, "max-depth", 0, ruleFlags["max-depth"])
	f.StringArrayVar(&rule.Access.InboundFrom, "accept-from", nil, ruleFlags["accept-from"])
	f.StringArrayVar(&rule.Access.OutboundTo, "send-to", nil, ruleFlags["send-to"])
	f.StringArrayVar(&rule.Access.ChannelTypes.Initiate, "open-type", nil, ruleFlags["open-type"])
	f.StringArrayVar(&rule.Access.ChannelTypes.Accept, "join-type", nil, ruleFlags["join-type"])
	f.BoolVar(&remove, "remove", false, "remove the operator's rule")
	return c
}

// ruleFlags are the flags that set parts of a rule, with their help.
var ruleFlags = map[string]string{
	"rate":         "posts in a minute, at most",
	"burst":        "posts at once, at most",
	"max-pending":  "unanswered envelopes, at most",
	"max-channels": "open channels of its own, at most",
	"max-tasks":    "open tasks of its own, at most",
	"max-depth":    "depth of delegation, at most",
	"accept-from":  "a `GLOB` of names that may reach it; may be repeated",
	"send-to":      "a `GLOB` of names that it may address; may be repeated",
	"open-type":    "a `GLOB` of channel types that it may open; may be repeated",
	"join-type":    "a `GLOB` of channel types that it may join; may be repeated",
}

// ruleText returns an operator's rule on one line.
func ruleText(rule *v1.OperatorRule) string {
	if rule == nil {
		return "no operator's rule"
	}
	text, err := json.Marshal(rule)
	if err != nil {
		return err.Error()
	}
	return cell(string(text))
}
