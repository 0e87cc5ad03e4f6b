package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// nameArguments makes every command that is called with too few or too many
// arguments, or with an empty one, say which, as its first line of help does.
func nameArguments(c *cobra.Command) {
	for _, below := range c.Commands() {
		nameArguments(below)
	}
	wanted := arguments(c.Use)
	check := c.Args
	if check == nil || len(wanted) == 0 && c.HasSubCommands() {
		return
	}
	c.Args = func(c *cobra.Command, args []string) error {
		err := check(c, args)
		if err == nil {
			return notEmpty(c, wanted, args)
		}
		if len(wanted) == 0 {
			if check(c, nil) != nil {
				return err // it checks its arguments itself
			}
			return fmt.Errorf("%q is one argument too many: %s", args[0], c.UseLine())
		}
		last := wanted[len(wanted)-1]
		switch {
		case len(args) < len(wanted) && !strings.HasPrefix(wanted[len(args)], "["):
			return fmt.Errorf("%s is missing: %s", strings.TrimSuffix(wanted[len(args)], "..."), c.UseLine())
		case len(args) > len(wanted) && !strings.HasSuffix(last, "..."):
			return fmt.Errorf("%q is one argument too many: %s", args[len(wanted)], c.UseLine())
		}
		return err
	}
}

// notEmpty refuses an empty argument, such as a variable that is not set: only a text
// may be empty.
func notEmpty(c *cobra.Command, wanted, args []string) error {
	for i, arg := range args {
		if arg != "" || len(wanted) == 0 {
			continue
		}
		name := strings.TrimSuffix(strings.Trim(wanted[min(i, len(wanted)-1)], "[]"), "...")
		if name != "TEXT" {
			return fmt.Errorf("%s is empty: %s", name, c.UseLine())
		}
	}
	return nil
}

// arguments are the words of a usage line between the command and its flags.
func arguments(use string) []string {
	words := strings.Fields(use)[1:]
	for i, word := range words {
		if strings.HasPrefix(word, "-") {
			return words[:i]
		}
	}
	return words
}

// missingFlags says of cobra's error about required flags which to add.
func missingFlags(c *cobra.Command, err error) error {
	names, ok := strings.CutPrefix(err.Error(), `required flag(s) "`)
	names, ends := strings.CutSuffix(names, `" not set`)
	if !ok || !ends {
		return err
	}
	list := strings.Split(names, `", "`)
	is := "is"
	if len(list) > 1 {
		is = "are"
	}
	return usageError("--%s %s missing: %s", strings.Join(list, " and --"), is, c.UseLine())
}
