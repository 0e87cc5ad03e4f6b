package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/parley-hub/parley/server/config"
)

// commandGroups are the headings of the help, in their order, with the commands
// below each.
var commandGroups = []struct {
	title    string
	commands []string
}{
	{"Run:", []string{"serve", "demo", "agent"}},
	{"Talk:", []string{"chat", "channels", "sessions", "join", "turns", "send", "requests", "tasks", "agents"}},
	{"Look:", []string{"tail", "events", "export", "replay", "audit", "top", "stats", "console", "doctor", "graph", "message", "agh", "schema"}},
	{"Look after:", []string{"keys", "config", "context", "data", "cluster", "backup", "restore", "import", "bench", "completion", "man", "version"}},
}

// groupCommands sorts the commands of the help under headings.
func groupCommands(root *cobra.Command) {
	root.SetHelpCommandGroupID(commandGroups[len(commandGroups)-1].title)
	for _, g := range commandGroups {
		root.AddGroup(&cobra.Group{ID: g.title, Title: g.title})
		for _, c := range root.Commands() {
			if slices.Contains(g.commands, c.Name()) {
				c.GroupID = g.title
			}
		}
	}
}

// otherNames maps names that people expect to our commands.
var otherNames = map[string][]string{
	"serve":  {"run", "start", "up"},
	"doctor": {"status", "ps", "health"},
	"join":   {"talk"},
	"top":    {"htop", "monitor", "dashboard"},
	"tail":   {"logs", "log", "follow", "watch"},
	"audit":  {"logs", "log"},
}

// otherFlags are flags that people expect, with the hint to print.
var otherFlags = map[string]string{
	"--port":    "say --listen 127.0.0.1:PORT with parley serve, or --hub http://127.0.0.1:PORT with the others",
	"--host":    "say --listen HOST:PORT with parley serve, or --hub URL with the others",
	"--version": "say parley version",
	"--json":    "say -o json",
	"--url":     "say --hub URL",
	"--token":   "set PARLEY_TOKEN, which other users of this machine do not see",
}

// suggestOthers makes errors about unknown commands and flags name similar ones.
func suggestOthers(root *cobra.Command) {
	for _, c := range root.Commands() {
		c.SuggestFor = otherNames[c.Name()]
		suggestBelow(c)
	}
	root.SuggestionsMinimumDistance = 1 // names as short as ours are two letters from each other
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		name, unknown := strings.CutPrefix(err.Error(), "unknown flag: --")
		if !unknown {
			return err
		}
		say, ok := otherFlags["--"+name]
		if wanted := arguments(c.Use); name == "data" && slices.Contains(wanted, "DIR") {
			say, ok = "the folder has no flag here: "+c.UseLine(), true
		}
		if near := nearestFlag(c, name); !ok && near != "" {
			say, ok = "did you mean --"+near+"?", true
		}
		if ok {
			return fmt.Errorf("%w; %s", err, say)
		}
		return err
	})
}

// nearestFlag returns the flag of a command that is most similar.
func nearestFlag(c *cobra.Command, name string) string {
	var known []string
	add := func(f *pflag.Flag) { known = append(known, f.Name) }
	c.Flags().VisitAll(add)
	c.InheritedFlags().VisitAll(add)
	slices.Sort(known)
	for _, flag := range known {
		if len(name) >= 3 && strings.HasPrefix(flag, name) {
			return flag
		}
	}
	return config.Nearest(name, known)
}

// suggestBelow does for subcommands of a group what cobra does for those of the root.
func suggestBelow(group *cobra.Command) {
	check := group.Args
	if !group.HasSubCommands() || check == nil {
		return
	}
	group.SuggestionsMinimumDistance = 2
	group.Args = func(c *cobra.Command, args []string) error {
		err := check(c, args)
		if err == nil || len(args) == 0 {
			return err
		}
		if like := c.SuggestionsFor(args[0]); len(like) > 0 {
			err = fmt.Errorf("%w\n\nDid you mean this?\n\t%s", err, strings.Join(like, "\n\t"))
		}
		return err
	}
	for _, c := range group.Commands() {
		suggestBelow(c)
	}
}
