package main

import (
	"fmt"
	"net/http"

	"github.com/spf13/cobra"

	v1 "github.com/parley-hub/parley/client/v1"
	"github.com/parley-hub/parley/server/config"
	"github.com/parley-hub/parley/server/folder"
)

// hubFlags are the flags through which a command finds the hub to ask.
type hubFlags struct {
	settings *settingsFlags
	url      string
}

// addHub gives a command --hub, and --data for a hub on this machine.
func addHub(c *cobra.Command) *hubFlags {
	flags := &hubFlags{settings: addSettings(c, func(key config.Key) bool { return key.Name == "data.dir" })}
	c.Flags().StringVar(&flags.url, "hub", "", "`URL` of the hub to ask (default PARLEY_HUB, or the hub that runs on the data folder)")
	return flags
}

// noHubError says that no hub runs on the data folder, and none was named.
type noHubError struct{ data config.Data }

func (e *noHubError) Error() string {
	return fmt.Sprintf("no hub runs on the data folder %s; start one with parley serve, or name another with --hub URL or --data DIR", e.data.Dir)
}

// findHub finds the hub to ask: the one that is named, or the one that runs on
// the data folder. If there is none the error is *noHubError.
func (a *app) findHub(flags *hubFlags, opts v1.Options) (*v1.Client, error) {
	opts.Token = lookup(a.environ, "PARLEY_TOKEN")
	url := flags.url
	if url == "" {
		url = lookup(a.environ, "PARLEY_HUB")
	}
	if url != "" {
		return hubAt(url, opts)
	}
	settings, err := flags.settings.load(a.environ)
	if err != nil {
		return nil, err
	}
	holder, held, err := folder.Look(settings.Data.Dir)
	if err != nil {
		return nil, err
	}
	if !held || holder.URL == "" {
		return nil, &noHubError{settings.Data}
	}
	// The hub of the folder is on this machine; its certificate need not name
	// the address it listens on.
	opts.HTTP = &http.Client{Transport: v1.Transport(true)}
	return hubAt(holder.URL, opts)
}

// hubAt is a client for the hub at a URL that the caller gave.
func hubAt(url string, opts v1.Options) (*v1.Client, error) {
	hub, err := v1.New(url, opts)
	if err != nil {
		return nil, usageError("%v", err)
	}
	return hub, nil
}
