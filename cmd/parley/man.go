package main

import (
	"os"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

// man writes the manual pages for packages.
func (a *app) man() *cobra.Command {
	return &cobra.Command{
		Use:     "man DIR",
		Short:   "Write a manual page for each command into a folder",
		Example: "  parley man ./man1",
		Args:    cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if err := os.MkdirAll(args[0], 0o755); err != nil {
				return err
			}
			root := c.Root()
			root.DisableAutoGenTag = true
			at := time.Now()
			// Repeated builds of a package must give the same bytes.
			if epoch, err := strconv.ParseInt(lookup(a.environ, "SOURCE_DATE_EPOCH"), 10, 64); err == nil {
				at = time.Unix(epoch, 0).UTC()
			}
			return doc.GenManTree(root, &doc.GenManHeader{Title: "PARLEY", Section: "1", Source: "Parley", Manual: "Parley", Date: &at}, args[0])
		},
	}
}
