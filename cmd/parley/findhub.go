package main

import (
	"cmp"
	"crypto/x509"
	"fmt"
	"net/http"
	"os"

	"github.com/spf13/cobra"

	v1 "github.com/parley-hub/parley/client/v1"
	"github.com/parley-hub/parley/server/config"
	"github.com/parley-hub/parley/server/folder"
)

// hubFlags are the flags by which a command finds its hub.
type hubFlags struct {
	settings *settingsFlags
	url      string
	context  string
	ca       string
}

// addHub gives a command the flags that name a hub, and --data for one on this
// machine.
func addHub(c *cobra.Command) *hubFlags {
	flags := &hubFlags{settings: addSettings(c, func(key config.Key) bool { return key.Name == dataDir })}
	c.Flags().StringVar(&flags.url, "hub", "", "`URL` of the hub to ask (default PARLEY_HUB, the current context, or the hub that runs on the data folder)")
	c.Flags().StringVar(&flags.context, "context", "", "`NAME` of the context with the hub to ask (default PARLEY_CONTEXT)")
	c.Flags().StringVar(&flags.ca, "ca", "", "`FILE` with the certificates that a hub's certificate is checked against, besides the system's (default PARLEY_CA)")
	c.MarkFlagsMutuallyExclusive("hub", "context")
	return flags
}

// noHubError says that no hub runs on the data folder, and none was named.
type noHubError struct {
	data  config.Data
	named bool // by a flag, a variable or a file
}

func (e *noHubError) Error() string {
	return fmt.Sprintf("no hub runs on the data folder %s; start one with parley serve --data %s, or name another with --hub URL or --data DIR", e.data.Dir, shellWord(e.data.Dir))
}

// choice is the hub of a command, and how it was chosen.
type choice struct {
	URL     string `json:"url"`
	Context string `json:"context,omitempty"`
	Why     string `json:"why"` // what named it

	token  string
	ca     string
	folder bool // it runs on the data folder
}

// chooseHub says which hub to ask: the first that is named by --hub, --context,
// --data, PARLEY_HUB, PARLEY_CONTEXT, the current context, or the data folder. If
// there is none the error is *noHubError.
func (a *app) chooseHub(flags *hubFlags) (choice, error) {
	env := func(name string) string { return lookup(a.environ, name) }
	with := func(c choice) choice {
		c.token = cmp.Or(env("PARLEY_TOKEN"), c.token)
		c.ca = cmp.Or(flags.ca, env("PARLEY_CA"), c.ca)
		return c
	}
	for _, flag := range []struct{ name, value string }{{"hub", flags.url}, {"context", flags.context}} {
		if flags.settings.named(flag.name) && flag.value == "" {
			// A variable that is not set must not select another hub.
			return choice{}, usageError("--%s is empty; leave it out, or name a hub with it", flag.name)
		}
	}
	switch {
	case flags.url != "":
		return with(choice{URL: flags.url, Why: "--hub"}), nil
	case flags.context != "":
		c, err := a.contextNamed(flags.context, "--context")
		return with(c), err
	case flags.settings.namesFolder():
	case env("PARLEY_HUB") != "":
		return with(choice{URL: env("PARLEY_HUB"), Why: "PARLEY_HUB"}), nil
	default:
		c, err := a.contextNamed(env("PARLEY_CONTEXT"), "PARLEY_CONTEXT")
		if err != nil || c.URL != "" {
			return with(c), err
		}
	}
	settings, err := flags.settings.load(a.environ)
	if err != nil {
		return choice{}, err
	}
	holder, held, err := folder.Look(settings.Data.Dir)
	if err != nil {
		return choice{}, err
	}
	if !held || holder.URL == "" {
		return choice{}, &noHubError{settings.Data, settings.Given(dataDir)}
	}
	return with(choice{URL: holder.URL, Why: "the data folder " + settings.Data.Dir, folder: true}), nil
}

// contextNamed returns the hub of a context; without a name, that of the current one,
// if there is one.
func (a *app) contextNamed(name, why string) (choice, error) {
	file, err := a.contexts()
	if err != nil {
		return choice{}, err
	}
	if name == "" {
		if name = file.Current; name == "" {
			return choice{}, nil
		}
		why = "the current context"
	}
	c, err := file.Find(name)
	if err != nil {
		return choice{}, usageError("%v", err)
	}
	token := c.Token
	if c.TokenEnv != "" {
		token = lookup(a.environ, c.TokenEnv)
	}
	return choice{URL: c.Hub, Context: c.Name, Why: why, token: token, ca: c.CA}, nil
}

// findHub returns a client for the hub that chooseHub returns.
func (a *app) findHub(flags *hubFlags, opts v1.Options) (*v1.Client, error) {
	c, err := a.chooseHub(flags)
	if err != nil {
		return nil, err
	}
	opts.Token = c.token
	// The hub of the folder is on this machine; its certificate need not name
	// the address it listens on.
	transport := v1.Transport(c.folder)
	if c.ca != "" {
		if transport.TLSClientConfig.RootCAs, err = certificates(c.ca); err != nil {
			return nil, err
		}
	}
	if c.folder || c.ca != "" {
		opts.HTTP = &http.Client{Transport: transport}
	}
	return hubAt(c.URL, opts)
}

// certificates returns the system's certificates with those of a file.
func certificates(file string) (*x509.CertPool, error) {
	pem, err := os.ReadFile(file)
	if err != nil {
		return nil, usageError("read the certificates of --ca: %v", err)
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool()
	}
	if !pool.AppendCertsFromPEM(pem) {
		return nil, usageError("%s holds no certificate in PEM form, which begins with -----BEGIN CERTIFICATE-----", file)
	}
	return pool, nil
}

// hubAt returns a client for the hub at a given URL.
func hubAt(url string, opts v1.Options) (*v1.Client, error) {
	hub, err := v1.New(url, opts)
	if err != nil {
		return nil, usageError("%v", err)
	}
	return hub, nil
}
