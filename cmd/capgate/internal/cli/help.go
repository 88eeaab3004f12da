package cli

import (
	"strings"

	"github.com/spf13/cobra"
)

// usageTemplate is cobra's, with the order and the words of our own help: a command that needs a subcommand is not
// offered without one.
const usageTemplate = `Usage:{{if and .Runnable (not .HasAvailableSubCommands)}}
  {{.UseLine}}{{end}}{{if .HasAvailableSubCommands}}
  {{.CommandPath}} COMMAND [flags]{{end}}{{if .HasExample}}

Examples:
{{.Example}}{{end}}{{if .HasAvailableSubCommands}}{{$cmds := .Commands}}{{range $group := .Groups}}

{{.Title}}{{range $cmds}}{{if (and (eq .GroupID $group.ID) (or .IsAvailableCommand (eq .Name "help")))}}
  {{rpad .Name .NamePadding }} {{.Short}}{{end}}{{end}}{{end}}{{if not .AllChildCommandsHaveGroup}}

{{if .Groups}}Other commands:{{else}}Commands:{{end}}{{range $cmds}}{{if (and (eq .GroupID "") (or .IsAvailableCommand (eq .Name "help")))}}
  {{rpad .Name .NamePadding }} {{.Short}}{{end}}{{end}}{{end}}{{end}}{{if .HasAvailableLocalFlags}}

Flags:
{{.LocalFlags.FlagUsages | trimTrailingWhitespaces}}{{end}}{{if .HasAvailableInheritedFlags}}

Flags of every command:
{{.InheritedFlags.FlagUsages | trimTrailingWhitespaces}}{{end}}{{if .HasHelpSubCommands}}

More help:{{range .Commands}}{{if .IsAdditionalHelpTopicCommand}}
  capgate help {{.Name}}  {{.Short}}{{end}}{{end}}{{end}}{{if .HasAvailableSubCommands}}

{{.CommandPath}} COMMAND --help says more about a command.{{end}}
`

// newHelpCmd replaces cobra's, which takes an unknown topic for no error.
func newHelpCmd(a *App) *cobra.Command {
	return &cobra.Command{
		Use:     "help [COMMAND]...",
		Short:   "Help about a command, or a topic",
		Long:    `Help about a command or a topic, the same as its --help.`,
		Example: "  capgate help scope open\n  capgate help environment",
		ValidArgsFunction: func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			at, rest, err := cmd.Root().Find(args)
			if err != nil || len(rest) > 0 {
				return nil, NoFiles
			}
			var names []string
			for _, c := range at.Commands() {
				if c.IsAvailableCommand() || c.IsAdditionalHelpTopicCommand() {
					names = append(names, cobra.CompletionWithDesc(c.Name(), c.Short))
				}
			}
			return names, NoFiles
		},
		RunE: a.Do(func(cmd *cobra.Command, args []string) error {
			topic, rest, err := cmd.Root().Find(args)
			if err != nil || len(rest) > 0 {
				return Usagef("no help about %q", strings.Join(args, " "))
			}
			topic.InitDefaultHelpFlag()
			topic.InitDefaultVersionFlag()
			topic.HelpFunc()(topic, nil)
			return nil
		}),
	}
}

// ShowUseLine has the help of a command show how it is run without a subcommand: unlike a [Parent], it does something
// alone.
func ShowUseLine(cmd *cobra.Command) {
	cmd.SetUsageTemplate(strings.Replace(usageTemplate, "{{if and .Runnable (not .HasAvailableSubCommands)}}", "{{if .Runnable}}", 1))
}
