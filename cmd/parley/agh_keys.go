package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/parley-hub/parley/dialect/agh/keyring"
	"github.com/parley-hub/parley/server/config"
)

func (a *app) aghKeys() *cobra.Command {
	c := group("keys", "Make, list and export the keys of AGH's trust profile",
		a.aghKeysNew(), a.aghKeysList(), a.aghKeysExport())
	c.Long = `Make, list and export the keys of AGH's trust profile. They lie in the data
folder, readable by its owner only, and are not part of backups. No hub is asked.`
	return c
}

// withRing gives a command --data, and runs it with the keys of that folder.
func (a *app) withRing(c *cobra.Command, fn func(ring *keyring.Ring, args []string) error) *cobra.Command {
	flags := addSettings(c, func(key config.Key) bool { return key.Name == dataDir })
	c.RunE = func(c *cobra.Command, args []string) error {
		settings, err := flags.load(a.environ)
		if err != nil {
			return err
		}
		if flags.namesFolder() && c.Name() != "new" {
			if err := mustExist(settings.Data.Dir); err != nil {
				return err
			}
		}
		return fn(keyring.At(settings.Data.Dir), args)
	}
	return c
}

func (a *app) aghKeysNew() *cobra.Command {
	return a.withRing(&cobra.Command{
		Use:     "new NICKNAME",
		Short:   "Make a key and print the handle that it proves",
		Example: "  parley agh keys new mason",
		Args:    cobra.ExactArgs(1),
	}, func(ring *keyring.Ring, args []string) error {
		info, err := ring.New(args[0])
		if err != nil {
			return err
		}
		return a.print(info, func(w io.Writer) error {
			_, err := fmt.Fprintf(w, "handle  %s\nfile    %s\n", info.Handle, info.File)
			return err
		})
	})
}

func (a *app) aghKeysList() *cobra.Command {
	return a.withRing(&cobra.Command{
		Use:     "list",
		Short:   "List the keys, without their private halves",
		Example: "  parley agh keys list",
		Args:    cobra.NoArgs,
	}, func(ring *keyring.Ring, _ []string) error {
		list, err := ring.List()
		if err != nil {
			return err
		}
		return a.print(map[string]any{"keys": list}, func(w io.Writer) error {
			if len(list) == 0 {
				_, err := fmt.Fprintln(w, "There are no keys. Make one with parley agh keys new NICKNAME.")
				return err
			}
			rows := make([][]string, len(list))
			for i, info := range list {
				rows[i] = []string{info.Handle, info.PubKey}
			}
			return a.writeColumns(w, []column{{"HANDLE", fixed}, {"PUBLIC KEY", flexible}}, rows)
		})
	})
}

func (a *app) aghKeysExport() *cobra.Command {
	var private bool
	c := a.withRing(&cobra.Command{
		Use:   "export HANDLE",
		Short: "Print a key as JSON: its public half, or all of it",
		Long: `Print a key as JSON: its public half, or with --private the whole key file, which
is a secret. A nickname that only one key has will do.`,
		Example: "  parley agh keys export mason",
		Args:    cobra.ExactArgs(1),
	}, func(ring *keyring.Ring, args []string) error {
		key, info, err := ring.Find(args[0])
		if err != nil {
			return err
		}
		if private {
			text, err := key.Marshal()
			if err != nil {
				return err
			}
			_, err = a.out.Write(text)
			return err
		}
		info.File = ""
		return a.printJSON(info)
	})
	c.Flags().BoolVar(&private, "private", false, "print the private half too")
	return c
}
