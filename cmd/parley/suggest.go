package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
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
	{"Look after:", []string{"keys", "config", "context", "data", "backup", "restore", "import", "bench", "completion", "man", "version"}},
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

// otherNames are what people call a command that is named otherwise here.
var otherNames = map[string][]string{
	"serve":   {"run", "start", "up"},
	"doctor":  {"status", "ps", "health"},
	"join":    {"chat", "talk"},
	"top":     {"htop", "monitor", "dashboard"},
	"tail":    {"logs", "log", "follow", "watch"},
	"audit":   {"logs", "log"},
	"restore": {"import"},
}

// otherFlags are flags that people expect, with what to say instead.
var otherFlags = map[string]string{
	"--port":    "say --listen 127.0.0.1:PORT with parley serve, or --hub http://127.0.0.1:PORT with the others",
	"--host":    "say --listen HOST:PORT with parley serve, or --hub URL with the others",
	"--version": "say parley version",
	"--json":    "say -o json",
	"--url":     "say --hub URL",
}

// suggestOthers makes unknown commands and flags tell which was perhaps meant.
func suggestOthers(root *cobra.Command) {
	for _, c := range root.Commands() {
		c.SuggestFor = otherNames[c.Name()]
	}
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error {
		name := strings.TrimPrefix(err.Error(), "unknown flag: ")
		if say, ok := otherFlags[name]; ok {
			return fmt.Errorf("%w; %s", err, say)
		}
		return err
	})
}
