package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	v1 "github.com/parley-hub/parley/client/v1"
	"github.com/parley-hub/parley/internal/bundle"
)

// exportBundle writes a bundle to a temporary file, checks that it is whole, and
// renames it.
func (a *app) exportBundle(ctx context.Context, hub *v1.Client, id, file string, home bool) error {
	if _, err := os.Lstat(file); err == nil {
		return fmt.Errorf("%s exists already; name a file that does not exist", file)
	}
	from, err := hub.Bundle(ctx, id, home)
	if err != nil {
		return err
	}
	defer from.Close()
	out, err := os.CreateTemp(filepath.Dir(file), "."+filepath.Base(file)+"-*")
	if err != nil {
		return err
	}
	defer os.Remove(out.Name())
	held, err := checkBundle(io.TeeReader(from, out))
	if err := errors.Join(err, out.Sync(), out.Close()); err != nil {
		return fmt.Errorf("the bundle is incomplete: %w; try again", err)
	}
	if err := os.Rename(out.Name(), file); err != nil {
		return err
	}
	data := map[string]any{"bundle": file, "channels": held.channels, "envelopes": held.envelopes, "contents": held.contents}
	return a.print(data, linef("%s holds %s; read it with parley import %s or parley replay %s", file, held, file, file))
}

// holding counts the contents of a bundle.
type holding struct {
	channels, contents int
	envelopes          uint64
}

func (h holding) String() string {
	text := fmt.Sprintf("%s with %s", plural(h.channels, "channel"), plural(int(h.envelopes), "envelope"))
	if h.contents > 0 {
		text += " and " + plural(h.contents, "content")
	}
	return text
}

// checkBundle reads a bundle to its checksum.
func checkBundle(from io.Reader) (h holding, err error) {
	in, err := bundle.NewReader(from)
	if err != nil {
		return h, err
	}
	for {
		part, err := in.Next()
		switch {
		case errors.Is(err, io.EOF):
			return h, nil
		case err != nil:
			return h, err
		case part.Content != nil:
			h.contents++
			continue
		}
		h.channels++
		for e, err := range in.Envelopes(part.Channel) {
			if err != nil {
				return h, err
			}
			if !e.Side {
				h.envelopes++
			}
		}
	}
}

func (a *app) importBundle() *cobra.Command {
	return a.withHub(&cobra.Command{
		Use:   "import FILE",
		Short: "Make a new, ended channel of a bundle",
		Long: `Make a new, ended channel of a bundle that parley export --bundle wrote, here or on
another hub. Ids and times of its envelopes are kept, the label imported_from names
the channel it was, and nobody is told. It needs an operator's key.`,
		Example: "  parley import incident.bundle",
		Args:    cobra.ExactArgs(1),
	}, func(ctx context.Context, hub *v1.Client, args []string) error {
		file, err := os.Open(args[0])
		if err != nil {
			return err
		}
		defer file.Close()
		// A damaged bundle is detected before anything is sent.
		if _, err := checkBundle(file); err != nil {
			return fmt.Errorf("%s: %w", args[0], err)
		}
		if _, err := file.Seek(0, io.SeekStart); err != nil {
			return err
		}
		made, err := hub.Import(ctx, file)
		if err != nil {
			return err
		}
		return a.print(made, func(w io.Writer) error {
			for _, one := range made.Channels {
				fmt.Fprintf(w, "%s holds %s of %s\n", one.ID, plural(int(one.Envelopes), "envelope"), one.From)
			}
			if made.HomeID != "" {
				fmt.Fprintf(w, "home %s holds them, with %s\n", made.HomeID, plural(made.Contents, "content"))
			}
			return nil
		})
	})
}

// plural returns a number with a noun.
func plural(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}
