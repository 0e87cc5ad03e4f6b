package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	v1 "github.com/parley-hub/parley/client/v1"
	"github.com/parley-hub/parley/server/access"
)

// keyStore has the operations on keys, of a running hub or of a folder.
type keyStore interface {
	Add(ctx context.Context, role access.Role, agent string) (token string, key access.Key, err error)
	Give(ctx context.Context, agent, token string) (access.Key, error)
	List(ctx context.Context) ([]access.Key, error)
	Revoke(ctx context.Context, id string) (access.Key, error)
}

func (a *app) keys() *cobra.Command {
	c := group("keys", "Add, list and revoke the access keys of a hub",
		a.keysAdd(), a.keysList(), a.keysRevoke())
	c.Long = `Add, list and revoke the access keys of a hub.

If a hub runs on the data folder it is asked, as an operator: with the token in
PARLEY_TOKEN, or without one until the first key exists. If none runs, the
folder is changed directly. --hub asks a hub elsewhere.`
	return c
}

// withKeys gives a command the flags that find a hub, and runs it with the
// hub's keys.
func (a *app) withKeys(c *cobra.Command, fn func(ctx context.Context, keys keyStore, args []string) error) *cobra.Command {
	flags := addHub(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		keys, release, err := a.findKeys(c.Context(), flags, c.Name() != "add")
		if err != nil {
			return err
		}
		return errors.Join(fn(c.Context(), keys, args), release())
	}
	return c
}

// findKeys returns the keys of the hub, or of the folder if no hub runs on it. The
// folder is created unless it must exist.
func (a *app) findKeys(ctx context.Context, flags *hubFlags, exists bool) (keyStore, func() error, error) {
	client, err := a.findHub(flags, v1.Options{})
	var none *noHubError
	if !errors.As(err, &none) {
		return hubKeys{client}, func() error { return nil }, err
	}
	check := checkOurs
	if exists {
		check = mustBeOurs
	}
	if err := check(none.data.Dir); err != nil {
		return nil, nil, err
	}
	return a.openFolderKeys(ctx, none.data)
}

// hubKeys are the keys of a running hub.
type hubKeys struct{ hub *v1.Client }

func (h hubKeys) Add(ctx context.Context, role access.Role, agent string) (string, access.Key, error) {
	token, key, err := h.hub.AddKey(ctx, string(role), agent)
	return token, accessKey(key), err
}

func (h hubKeys) Give(ctx context.Context, agent, token string) (access.Key, error) {
	key, err := h.hub.GiveKey(ctx, agent, token)
	return accessKey(key), err
}

func (h hubKeys) List(ctx context.Context) ([]access.Key, error) {
	list, err := h.hub.Keys(ctx)
	keys := make([]access.Key, len(list))
	for i, key := range list {
		keys[i] = accessKey(key)
	}
	return keys, err
}

func (h hubKeys) Revoke(ctx context.Context, id string) (access.Key, error) {
	key, err := h.hub.RevokeKey(ctx, id)
	return accessKey(key), err
}

func accessKey(k v1.Key) access.Key {
	return access.Key{ID: k.ID, Role: access.Role(k.Role), Agent: k.Agent, Created: k.Created}
}

// warnOfNoOperator says what the first key ends if it is not an operator's.
func (a *app) warnOfNoOperator(keys keyStore) {
	stop := ""
	if _, runs := keys.(hubKeys); runs {
		stop = "; stop the hub first"
	}
	fmt.Fprintf(a.err, "\nThis is the first key, and not an operator's: from now on nobody is operator.\n  → parley keys add --role operator makes one%s\n", stop)
}

func (a *app) keysAdd() *cobra.Command {
	var agent, role string
	var given bool
	c := a.withKeys(&cobra.Command{
		Use:   "add --agent NAME | --role operator|reader",
		Short: "Make a key and print its token, this once",
		Example: `  parley keys add --role operator
  parley keys add --agent alice
  parley keys add --agent bob --token-stdin < bob.token`,
		Args: cobra.NoArgs,
	}, func(ctx context.Context, keys keyStore, _ []string) (err error) {
		wanted := access.Role(role)
		if agent != "" {
			wanted = access.Agent
		}
		if list, err := keys.List(ctx); err == nil && len(list) == 0 && wanted != access.Operator {
			defer func() {
				if err == nil {
					a.warnOfNoOperator(keys)
				}
			}()
		}
		if given {
			token, err := a.readToken()
			if err != nil {
				return err
			}
			key, err := keys.Give(ctx, agent, token)
			if err != nil {
				return err
			}
			return a.print(key, func(w io.Writer) error {
				_, err := fmt.Fprintf(w, "key    %s (%s)\n\nThe token that was given proves the name from now on.\n", key.ID, describe(key))
				return err
			})
		}
		token, key, err := keys.Add(ctx, wanted, agent)
		if err != nil {
			return err
		}
		data := struct {
			access.Key
			Token string `json:"token"`
		}{key, token}
		return a.print(data, func(w io.Writer) error {
			_, err := fmt.Fprintf(w, "key    %s (%s)\ntoken  %s\n\nThe token is shown this once. %s\n", key.ID, describe(key), token, useOf(key))
			return err
		})
	})
	c.Flags().StringVar(&agent, "agent", "", "the key proves the identity of the agent with this name")
	c.Flags().BoolVar(&given, "token-stdin", false, "with --agent: take the token that the agent has already, of 24 characters or more, from standard input")
	c.Flags().StringVar(&role, "role", "", "the key makes its holder operator or reader")
	c.PreRunE = func(c *cobra.Command, _ []string) error {
		named, ranked := c.Flags().Changed("agent"), c.Flags().Changed("role")
		switch {
		case named == ranked:
			return usageError("a key is an agent's or has a role: give either --agent NAME or --role operator|reader")
		case given && !named:
			return usageError("--token-stdin is for --agent NAME; tokens of operators and readers are made by the hub")
		case named && agent == "":
			return usageError("--agent is empty: it is the name of the agent whose key it is")
		case ranked && role != string(access.Operator) && role != string(access.Reader):
			return usageError("--role %s: the role is operator or reader; a key for an agent is made with --agent NAME", role)
		}
		return nil
	}
	return c
}

func useOf(key access.Key) string {
	if key.Role == access.Agent {
		return "AG2 clients give it as the token of the scheme api_key."
	}
	return "Commands take it from PARLEY_TOKEN, HTTP clients send it as Authorization: Bearer."
}

func describe(key access.Key) string {
	if key.Role == access.Agent {
		return "agent " + cell(key.Agent)
	}
	return key.Role.String()
}

func (a *app) keysList() *cobra.Command {
	return a.withKeys(&cobra.Command{
		Use:     "list",
		Short:   "List the keys, without their tokens",
		Example: "  parley keys list",
		Args:    cobra.NoArgs,
	}, func(ctx context.Context, keys keyStore, _ []string) error {
		list, err := keys.List(ctx)
		if err != nil {
			return err
		}
		return a.print(map[string]any{"keys": list}, func(w io.Writer) error {
			if len(list) == 0 {
				_, err := fmt.Fprintln(w, "There are no keys. Make one with parley keys add.")
				return err
			}
			rows := make([][]string, len(list))
			for i, key := range list {
				rows[i] = []string{key.ID, cell(describe(key)), key.Created.Format(time.RFC3339)}
			}
			return a.writeColumns(w, []column{{"KEY", fixed}, {"FOR", flexible}, {"CREATED", fixed}}, rows)
		})
	})
}

func (a *app) keysRevoke() *cobra.Command {
	return a.withKeys(&cobra.Command{
		Use:     "revoke KEY",
		Short:   "Revoke a key: its token is worth nothing from then on",
		Example: "  parley keys revoke $KEY",
		Args:    cobra.ExactArgs(1),
	}, func(ctx context.Context, keys keyStore, args []string) error {
		key, err := keys.Revoke(ctx, args[0])
		if err != nil {
			return err
		}
		return a.print(key, linef("revoked %s (%s)", key.ID, describe(key)))
	})
}
