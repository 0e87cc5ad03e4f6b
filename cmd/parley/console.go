package main

import (
	"context"
	"fmt"
	"os/exec"
	"runtime"

	"github.com/spf13/cobra"

	v1 "github.com/parley-hub/parley/client/v1"
	"github.com/parley-hub/parley/console"
)

// opened is the address of the console; the code in it signs a browser in once.
type opened struct {
	URL string `json:"url"`
}

func (a *app) console() *cobra.Command {
	c := &cobra.Command{
		Use:   "console",
		Short: "Open the console in a browser, signed in",
		Long: "Open the console in a browser, signed in with the key that this command uses.\n" +
			"The address holds a code that works once, within a minute.",
		Example: "  parley console --print",
		Args:    cobra.NoArgs,
	}
	show := c.Flags().Bool("print", false, "print the address and open nothing")
	return a.withHub(c, func(ctx context.Context, hub *v1.Client, _ []string) error {
		session, err := hub.Session(ctx)
		if err != nil {
			return err
		}
		url := hub.URL() + console.Path
		if session.KeysExist {
			code, _, err := hub.SessionCode(ctx)
			if err != nil {
				return err
			}
			url += "#code=" + code
		}
		if *show {
			return a.print(opened{url}, line(url))
		}
		if err := browse(ctx, url); err != nil {
			return fmt.Errorf("open a browser: %w; parley console --print tells the address", err)
		}
		return nil
	})
}

// browse opens an address with the system's own opener.
func browse(ctx context.Context, url string) error {
	switch runtime.GOOS {
	case "darwin":
		return exec.CommandContext(ctx, "open", url).Run()
	case "windows":
		return exec.CommandContext(ctx, "rundll32", "url.dll,FileProtocolHandler", url).Run()
	default:
		return exec.CommandContext(ctx, "xdg-open", url).Run()
	}
}
