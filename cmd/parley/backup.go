package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	v1 "github.com/parley-hub/parley/client/v1"
	"github.com/parley-hub/parley/journal/cluster"
	"github.com/parley-hub/parley/journal/disk"
	"github.com/parley-hub/parley/journal/disk/repair"
	"github.com/parley-hub/parley/server/access"
	"github.com/parley-hub/parley/server/config"
)

func (a *app) backup() *cobra.Command {
	c := &cobra.Command{
		Use:   "backup DIR",
		Short: "Back a running hub up into a new folder here",
		Long: `Back a running hub up, as an operator, into a new folder on this side. The hub
goes on meanwhile; the backup holds what was durable at one moment, with the access
keys, hashed. Turn it into a data folder with parley restore. The backup of a cluster
has all its shards; begin a cluster with it with parley cluster init --from.`,
		Example: "  parley backup ./backup-monday",
		Args:    cobra.ExactArgs(1),
	}
	flags := addHub(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		if _, err := os.Lstat(args[0]); err == nil {
			return fmt.Errorf("%s exists already; name a folder that does not exist", args[0])
		}
		hub, err := a.findHub(flags, v1.Options{})
		if none, ok := errors.AsType[*noHubError](err); ok && none.named {
			err = cmp.Or(mustExist(none.data.Dir), err)
		}
		if err != nil {
			return err
		}
		archive, err := hub.Backup(c.Context())
		if err != nil {
			return err
		}
		tell, end := a.progress()
		received := &counter{r: archive}
		ofCluster, err := cluster.Unpack(received, args[0], disk.Options{}, tell)
		end()
		if err := errors.Join(err, archive.Close()); err != nil {
			return fmt.Errorf("the backup is incomplete: %w; remove %s and try again", err, args[0])
		}
		data := map[string]any{"backup": args[0], "bytes": received.n}
		next := fmt.Sprintf("turn it into a data folder with parley restore %s --data NEW", shellWord(args[0]))
		if ofCluster {
			data["cluster"] = true
			next = fmt.Sprintf("begin a cluster with it: parley cluster init --cluster URL --from %s --data NEW", shellWord(args[0]))
		}
		return a.print(data, linef("%s holds the backup (%d bytes); %s", args[0], received.n, next))
	}
	return c
}

// counter counts bytes that are read.
type counter struct {
	r io.Reader
	n int64
}

func (c *counter) Read(b []byte) (int, error) {
	n, err := c.r.Read(b)
	c.n += int64(n)
	return n, err
}

func (a *app) restore() *cobra.Command {
	c := &cobra.Command{
		Use:   "restore DIR --data NEW",
		Short: "Make a data folder from a backup, in a new epoch",
		Long: `Make a data folder from a backup, in a new epoch. The access keys that the hub had
when it was backed up come back with it, also those that were revoked since; they
are listed, so that they can be revoked again.`,
		Example: "  parley restore ./backup-monday --data ./restored",
		Args:    cobra.ExactArgs(1),
	}
	flags := addSettings(c, func(key config.Key) bool { return key.Name == dataDir })
	c.RunE = func(c *cobra.Command, args []string) error {
		settings, err := flags.load(a.environ)
		if err != nil {
			return err
		}
		to := settings.Data.Dir
		if shards, err := cluster.BackupShards(disk.Options{}, args[0]); err == nil && shards > 0 {
			return fmt.Errorf("%s is the backup of a cluster; begin a cluster with it: parley cluster init --cluster URL --from %s --data NEW", args[0], shellWord(args[0]))
		}
		tell, end := a.progress()
		err = repair.Restore(args[0], to, disk.Options{}, tell)
		end()
		if err != nil {
			return err
		}
		keys, err := a.keysIn(c.Context(), settings.Data)
		if err != nil {
			return fmt.Errorf("%s is restored, but its access keys cannot be read: %w", to, err)
		}
		return a.print(map[string]any{"data": to, "from": args[0], "keys": keys}, func(w io.Writer) error {
			if len(keys) > 0 {
				fmt.Fprintln(w, "These keys came with the backup, and their tokens are accepted again:")
				if err := table(w, func(w io.Writer) {
					for _, key := range keys {
						fmt.Fprintf(w, "  %s\t%s\tmade %s\n", key.ID, describe(key), key.Created.Format(time.RFC3339))
					}
				}); err != nil {
					return err
				}
				fmt.Fprintf(w, "Revoke one with parley keys revoke ID --data %s\n\n", shellWord(to))
			}
			_, err := fmt.Fprintf(w, "%s is ready; start it with parley serve --data %s\n", to, shellWord(to))
			return err
		})
	}
	return c
}

// keysIn lists the keys of a folder that no hub uses.
func (a *app) keysIn(ctx context.Context, data config.Data) ([]access.Key, error) {
	keys, release, err := a.openFolderKeys(ctx, data)
	if err != nil {
		return nil, err
	}
	list, err := keys.List(ctx)
	return list, errors.Join(err, release())
}
