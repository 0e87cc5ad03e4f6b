package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/parley-hub/parley/client/hpd"
	v1 "github.com/parley-hub/parley/client/v1"
	"github.com/parley-hub/parley/dialect/agh/wire"
	"github.com/parley-hub/parley/envelope"
	"github.com/parley-hub/parley/request"
	"github.com/parley-hub/parley/server/config"
)

// completeTimeout bounds how long a shell waits for the hub's names, and
// maxCompletions how many are requested.
const (
	completeTimeout = 3 * time.Second
	maxCompletions  = "200"
)

// completer returns the words for one place of a command line. If no hub answers,
// there are none.
type completer func(a *app, c *cobra.Command, args []string) []string

// completeArguments are completers by the name of the argument in a usage line, and
// completeFlags by the name of the flag.
var (
	completeArguments = map[string]completer{
		"CHANNEL": channelIDs, "NAME": agentNames, "AGENT": agentNames, "TYPE": channelTypes,
		"REQUEST": requestIDs, "TASK": taskIDs, "KEY": keyIDs, "SESSION": sessionIDs,
	}
	completeFlags = map[string]completer{
		"as": agentNames, "agent": agentNames, "to": agentNames, "for": agentNames, "asked-by": agentNames, "waiting-for": agentNames,
		"channel": channelIDs, "type": typeNames, "kind": kinds, "set": settingKeys,
	}
)

// completeNames adds completion of names that the hub knows to c and its subcommands.
func (a *app) completeNames(c *cobra.Command) {
	for _, below := range c.Commands() {
		a.completeNames(below)
	}
	hub := c.Flags().Lookup("hub") != nil && !strings.HasPrefix(c.CommandPath(), "parley context")
	if wanted := arguments(c.Use); hub && len(wanted) > 0 && c.ValidArgsFunction == nil && c.CommandPath() != "parley agents add" {
		c.ValidArgsFunction = func(c *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
			return a.complete(c, args, begun, completeArguments[argumentAt(wanted, len(args))])
		}
	}
	for name, find := range completeFlags {
		if c.Flags().Lookup(name) == nil || !hub && name != "set" && name != "kind" {
			continue
		}
		err := c.RegisterFlagCompletionFunc(name, func(c *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
			found, how := a.complete(c, args, begun, find)
			if name == "set" {
				how |= cobra.ShellCompDirectiveNoSpace // a value follows
			}
			return found, how
		})
		if err != nil {
			panic(err) // the flag exists, and has no other completion
		}
	}
}

// complete returns the words of a completer that begin with what was typed.
func (a *app) complete(c *cobra.Command, args []string, begun string, find completer) ([]string, cobra.ShellCompDirective) {
	if find == nil {
		return nil, cobra.ShellCompDirectiveDefault
	}
	found := slices.DeleteFunc(find(a, c, args), func(word string) bool { return !strings.HasPrefix(word, begun) })
	return found, cobra.ShellCompDirectiveNoFileComp
}

// argumentAt returns the name of an argument; the last may be repeated.
func argumentAt(wanted []string, i int) string {
	if len(wanted) == 0 {
		return ""
	}
	last := wanted[len(wanted)-1]
	switch {
	case i < len(wanted):
		return strings.Trim(wanted[i], "[].")
	case strings.HasSuffix(last, "..."):
		return strings.Trim(last, "[].")
	}
	return ""
}

// askFor calls ask with the hub of the command line, for a short time.
func (a *app) askFor(c *cobra.Command, ask func(ctx context.Context, hub *v1.Client) error) {
	text := func(name string) string { value, _ := c.Flags().GetString(name); return value }
	set, _ := c.Flags().GetStringArray("set")
	flags := &hubFlags{
		url: text("hub"), context: text("context"), ca: text("ca"),
		settings: &settingsFlags{flags: c.Flags(), file: text("config"), set: set},
	}
	for _, key := range allSettings {
		if key.Name == dataDir {
			flags.settings.keys = []config.Key{key}
		}
	}
	hub, err := a.findHub(flags, v1.Options{})
	if none, ok := errors.AsType[*noHubError](err); ok && !none.named {
		hub, err = hubAt(defaultHub, v1.Options{Token: lookup(a.environ, "PARLEY_TOKEN")})
	}
	if err != nil {
		return // completion cannot show an error
	}
	ctx, cancel := context.WithTimeout(c.Context(), completeTimeout)
	defer cancel()
	_ = ask(ctx, hub) // completion cannot show an error
}

// listed requests a page of a list and returns a word for each item; empty words are
// left out.
func listed[T any](a *app, c *cobra.Command, list func(*v1.Client, context.Context, url.Values) (*v1.Page[T], error), query url.Values, word func(*T) string) (found []string) {
	query.Set("limit", maxCompletions)
	a.askFor(c, func(ctx context.Context, hub *v1.Client) error {
		page, err := list(hub, ctx, query)
		if err != nil {
			return err
		}
		for i := range page.Items {
			if completion := word(&page.Items[i]); completion != "" {
				found = append(found, completion)
			}
		}
		return nil
	})
	return found
}

func channelIDs(a *app, c *cobra.Command, _ []string) []string {
	found := listed(a, c, (*v1.Client).Channels, url.Values{"newest": {"true"}}, func(ch *v1.Channel) string {
		return cobra.CompletionWithDesc(ch.ID, oneLine(ch.Manifest.Type+" "+ch.Labels[titleLabel]))
	})
	if len(found) == 0 {
		return nil
	}
	return append(found, cobra.CompletionWithDesc(latestChannel, "the one that was opened last"))
}

func agentNames(a *app, c *cobra.Command, args []string) []string {
	return listed(a, c, (*v1.Client).Agents, url.Values{}, func(agent *v1.Agent) string {
		if name := agent.Passport.Name; name == oneLine(name) && !slices.Contains(args, name) {
			return name
		}
		return ""
	})
}

// requestIDs returns the ids of open requests for commands that answer them, else of
// all.
func requestIDs(a *app, c *cobra.Command, _ []string) []string {
	query := url.Values{}
	if c.Name() == "answer" {
		query.Set("state", string(request.Open))
	}
	return listed(a, c, (*v1.Client).Requests, query, func(r *v1.Request) string {
		return cobra.CompletionWithDesc(r.ID, oneLine(r.Kind+" "+r.Title))
	})
}

func taskIDs(a *app, c *cobra.Command, _ []string) []string {
	return listed(a, c, (*v1.Client).Tasks, url.Values{}, func(t *v1.Task) string {
		return cobra.CompletionWithDesc(t.ID, oneLine(t.State+" "+t.Spec.Title))
	})
}

func keyIDs(a *app, c *cobra.Command, _ []string) (found []string) {
	a.askFor(c, func(ctx context.Context, hub *v1.Client) error {
		keys, err := hub.Keys(ctx)
		for _, k := range keys {
			found = append(found, cobra.CompletionWithDesc(k.ID, oneLine(cmp.Or(k.Agent, k.Role))))
		}
		return err
	})
	return found
}

func sessionIDs(a *app, c *cobra.Command, _ []string) (found []string) {
	a.askFor(c, func(ctx context.Context, hub *v1.Client) error {
		sessions, _, err := hpd.New(hub).Sessions(ctx, url.Values{"limit": {maxCompletions}})
		for _, s := range sessions {
			if s.ID == oneLine(s.ID) { // ids that do not fit a shell's line are left out
				found = append(found, s.ID)
			}
		}
		return err
	})
	return found
}

// typeNames returns types of events for commands that send them, else of channels.
func typeNames(a *app, c *cobra.Command, args []string) []string {
	if c.Name() == "send" {
		return []string{envelope.TypeText, envelope.TypePacket, envelope.TypeContextSet}
	}
	return channelTypes(a, c, args)
}

func channelTypes(*app, *cobra.Command, []string) (found []string) {
	all, err := adapters(allSettings.Default())
	if err != nil {
		return nil
	}
	for _, adapter := range all {
		found = append(found, adapter.Manifest().Type)
	}
	return found
}

// kinds returns the kinds of agents, of AGH's messages, or of audit records.
func kinds(a *app, c *cobra.Command, _ []string) (found []string) {
	switch path := c.CommandPath(); {
	case path == "parley agents list":
		return []string{"agent", "human", "remote_agent"}
	case path == "parley requests list":
		return requestKinds
	case strings.HasPrefix(path, "parley agh "):
		for _, kind := range wire.Kinds() {
			found = append(found, string(kind))
		}
	case path == "parley audit":
		a.askFor(c, func(ctx context.Context, hub *v1.Client) (err error) {
			found, err = auditKinds(ctx, hub)
			return err
		})
	}
	return found
}

// auditKinds returns the hub's kinds and those of the newest records: a program that
// embeds a hub may write others.
func auditKinds(ctx context.Context, hub *v1.Client) (found []string, err error) {
	page, err := hub.Audit(ctx, url.Values{"limit": {maxCompletions}, "newest": {"true"}})
	if err != nil {
		return nil, err
	}
	found = slices.Clone(hubAuditKinds)
	for _, raw := range page.Items {
		var record struct{ Kind string }
		if json.Unmarshal(raw, &record) == nil && !slices.Contains(found, record.Kind) {
			found = append(found, record.Kind)
		}
	}
	slices.Sort(found)
	return found, nil
}

func settingKeys(*app, *cobra.Command, []string) (found []string) {
	for _, key := range allSettings {
		found = append(found, cobra.CompletionWithDesc(key.Name+"=", key.Meaning))
	}
	return found
}

// oneLine returns a text from others in a form that fits a shell's line.
func oneLine(s string) string { return strings.Join(strings.Fields(clean(s)), " ") }
