package main

import "github.com/spf13/cobra"

func (a *app) completion() *cobra.Command {
	return &cobra.Command{
		Use:   "completion bash|zsh|fish|powershell",
		Short: "Print a script that completes commands in a shell",
		Long: `Print a script that completes commands in a shell: their names and flags, settings,
types and kinds, and the channels and agents of the hub that the command would
ask, if it answers within three seconds.`,
		Example: `  source <(parley completion bash)
  parley completion zsh > "${fpath[1]}/_parley"
  parley completion fish > ~/.config/fish/completions/parley.fish`,
		ValidArgs: []string{"bash", "zsh", "fish", "powershell"},
		Args:      cobra.MatchAll(cobra.ExactArgs(1), cobra.OnlyValidArgs),
		RunE: func(c *cobra.Command, args []string) error {
			switch args[0] {
			case "bash":
				return c.Root().GenBashCompletionV2(a.out, true)
			case "zsh":
				return c.Root().GenZshCompletion(a.out)
			case "fish":
				return c.Root().GenFishCompletion(a.out, true)
			default:
				return c.Root().GenPowerShellCompletionWithDesc(a.out)
			}
		},
	}
}
