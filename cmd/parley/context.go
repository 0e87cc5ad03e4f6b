package main

import (
	"bufio"
	"fmt"
	"io"
	"net/url"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/parley-hub/parley/internal/contexts"
)

// String names the hub and how it was chosen.
func (c choice) String() string {
	if c.Context != "" {
		return fmt.Sprintf("%s (context %s, by %s)", c.URL, c.Context, c.Why)
	}
	return fmt.Sprintf("%s (by %s)", c.URL, c.Why)
}

// contexts reads the file of contexts.
func (a *app) contexts() (*contexts.File, error) {
	return contexts.Load(contexts.Path(func(name string) string { return lookup(a.environ, name) }))
}

// changeContexts reads the file, changes it, and writes it back.
func (a *app) changeContexts(change func(*contexts.File) error) error {
	file, err := a.contexts()
	if err != nil {
		return err
	}
	if err := change(file); err != nil {
		return usageError("%v", err)
	}
	return file.Save()
}

func (a *app) context() *cobra.Command {
	return group("context", "Keep the hubs that you work with, by name",
		a.contextAdd(), a.contextUse(), a.contextList(), a.contextShow(), a.contextRemove())
}

func (a *app) contextAdd() *cobra.Command {
	var c contexts.Context
	var stdin bool
	command := &cobra.Command{
		Use:   "add NAME --hub URL",
		Short: "Add a hub under a name, or change it",
		Long: `Add a hub under a name, or change it. The token is read from standard input, or
from a variable of the environment each time that it is needed. The first context
is used from then on.`,
		Example: "  parley context add prod --hub https://hub.example.org --token-env PROD_TOKEN",
		Args:    cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			c.Name = args[0]
			if at, err := url.Parse(c.Hub); err != nil || at.Host == "" || at.Scheme != "http" && at.Scheme != "https" {
				return usageError("--hub %q is not the URL of a hub; it looks like http://127.0.0.1:7440", c.Hub)
			}
			if c.CA != "" {
				if _, err := certificates(c.CA); err != nil {
					return err
				}
				var err error
				if c.CA, err = filepath.Abs(c.CA); err != nil {
					return err
				}
			}
			if stdin {
				var err error
				if c.Token, err = a.readToken(); err != nil {
					return err
				}
			}
			return a.changeContexts(func(f *contexts.File) error {
				if err := f.Add(c); err != nil {
					return err
				}
				if f.Current == "" {
					return f.Use(c.Name)
				}
				return nil
			})
		},
	}
	command.Flags().StringVar(&c.Hub, "hub", "", "`URL` of the hub")
	command.Flags().BoolVar(&stdin, "token-stdin", false, "read the token from standard input and keep it")
	command.Flags().StringVar(&c.TokenEnv, "token-env", "", "the `VARIABLE` of the environment that holds the token")
	command.Flags().StringVar(&c.CA, "ca", "", "`FILE` with the certificates that the hub's is checked against, besides the system's")
	command.MarkFlagsMutuallyExclusive("token-stdin", "token-env")
	require(command, "hub")
	return command
}

// readToken reads a token from standard input: its first line.
func (a *app) readToken() (string, error) {
	line, err := bufio.NewReader(io.LimitReader(a.in, 4096)).ReadString('\n')
	token := strings.TrimSpace(line)
	if token == "" {
		return "", usageError("no token came on standard input (%v)", err)
	}
	return token, nil
}

func (a *app) contextUse() *cobra.Command {
	return &cobra.Command{
		Use:     "use NAME",
		Short:   "Ask the hub of a context from now on; - is the one before",
		Example: "  parley context use prod",
		Args:    cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			return a.changeContexts(func(f *contexts.File) error { return f.Use(args[0]) })
		},
	}
}

func (a *app) contextList() *cobra.Command {
	return &cobra.Command{
		Use:     "list",
		Short:   "List the contexts",
		Example: "  parley context list",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			f, err := a.contexts()
			if err != nil {
				return err
			}
			data := map[string]any{"current": f.Current, "contexts": append([]contexts.Context{}, f.Contexts...)}
			return a.print(data, func(w io.Writer) error {
				if len(f.Contexts) == 0 {
					_, err := fmt.Fprintln(w, "There are no contexts; parley context add NAME --hub URL makes one.")
					return err
				}
				rows := make([][]string, len(f.Contexts))
				for i, c := range f.Contexts {
					mark := ""
					if c.Name == f.Current {
						mark = "*"
					}
					rows[i] = []string{mark, c.Name, cell(c.Hub), tokenOf(c)}
				}
				return a.writeColumns(w, []column{{"", fixed}, {"NAME", flexible}, {"HUB", flexible}, {"TOKEN", flexible}}, rows)
			})
		},
	}
}

// tokenOf says where a context's token is, never the token.
func tokenOf(c contexts.Context) string {
	switch {
	case c.TokenEnv != "":
		return "from " + cell(c.TokenEnv)
	case c.Token != "":
		return "kept"
	}
	return "none"
}

func (a *app) contextShow() *cobra.Command {
	return &cobra.Command{
		Use:     "show [NAME]",
		Short:   "Show a context, or the one that is used, without its token",
		Example: "  parley context show prod",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			f, err := a.contexts()
			if err != nil {
				return err
			}
			name := f.Current
			if len(args) > 0 {
				name = args[0]
			}
			if name == "" {
				return usageError("no context is used; parley context use NAME uses one")
			}
			c, err := f.Find(name)
			if err != nil {
				return usageError("%v", err)
			}
			return a.print(c, func(w io.Writer) error {
				return table(w, func(w io.Writer) {
					fmt.Fprintf(w, "name\t%s\nhub\t%s\ntoken\t%s\n", c.Name, cell(c.Hub), tokenOf(c))
					if c.CA != "" {
						fmt.Fprintf(w, "ca\t%s\n", cell(c.CA))
					}
				})
			})
		},
	}
}

func (a *app) contextRemove() *cobra.Command {
	return &cobra.Command{
		Use:     "remove NAME",
		Short:   "Forget a context",
		Example: "  parley context remove prod",
		Args:    cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			return a.changeContexts(func(f *contexts.File) error { return f.Remove(args[0]) })
		},
	}
}
