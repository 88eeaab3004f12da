package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/capgate/capgate/capgate"
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
func newHelpCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "help [COMMAND]...",
		Short:   "Help about a command, or a topic",
		Long:    `Help about a command or a topic, the same as its --help.`,
		Example: "  capgate help scope open\n  capgate help environment",
		ValidArgsFunction: func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			at, rest, err := cmd.Root().Find(args)
			if err != nil || len(rest) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			var names []string
			for _, c := range at.Commands() {
				if c.IsAvailableCommand() || c.IsAdditionalHelpTopicCommand() {
					names = append(names, cobra.CompletionWithDesc(c.Name(), c.Short))
				}
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: a.do(func(cmd *cobra.Command, args []string) error {
			topic, rest, err := cmd.Root().Find(args)
			if err != nil || len(rest) > 0 {
				return usagef("no help about %q", strings.Join(args, " "))
			}
			topic.InitDefaultHelpFlag()
			topic.InitDefaultVersionFlag()
			topic.HelpFunc()(topic, nil)
			return nil
		}),
	}
}

// variable is one element of what `help environment --json` prints.
type variable struct {
	Name    string `json:"name"`
	Also    string `json:"also,omitempty"`
	Meaning string `json:"meaning"`
	Value   string `json:"value"`
	From    string `json:"from,omitempty"`
}

// newEnvironmentTopic is no command: cobra offers what has nothing to run as a help topic.
func newEnvironmentTopic(a *app) *cobra.Command {
	topic := &cobra.Command{
		Use:   "environment",
		Short: "the variables that set up the hook and the command line",
		Long: `Everything is set up by environment variables. A switch is on when its value is exactly 1; anything else is off.
Switches act on the hook: capgate turn refuses at the cap whatever they say.`,
	}
	topic.SetHelpFunc(func(*cobra.Command, []string) { a.environment(topic.Long) })
	return topic
}

func (a *app) environment(intro string) {
	vars := []variable{}
	for _, v := range capgate.Variables(a.Lookup) {
		vars = append(vars, variable(v))
	}
	session := variable{
		Name: sessionVariables[0], Also: sessionVariables[1],
		Meaning: "the session that scope open and scope close are about without --session; the client sets it, for Oh My Pi its extension",
	}
	for _, name := range sessionVariables {
		if v, _ := a.Lookup(name); v != "" && session.Value == "" {
			session.Value, session.From = v, name
		}
	}
	vars = append(vars, session)
	if a.json {
		_ = a.printJSON(vars) // an error stays in a.out, where Main finds it
		return
	}
	fmt.Fprintln(a.out, intro)
	for _, v := range vars {
		a.printf("\n%s", v.Name)
		if v.Also != "" {
			a.printf(" (also read as %s)", v.Also)
		}
		a.printf("\n    %s\n", v.Meaning)
		switch v.From {
		case "":
			a.printf("    not set\n")
		default:
			a.printf("    now: %s (from %s)\n", v.Value, v.From)
		}
	}
	a.printf("\nWith these, and the flags of this command line:\n")
	state, err := a.stateDir()
	a.printf("    state directory: %s\n", orError(state, err))
	file, err := a.ledgerPath()
	a.printf("    ledger:          %s\n", orError(file, err))
}

func orError(text string, err error) string {
	if err != nil {
		return "none: " + err.Error()
	}
	return text
}
