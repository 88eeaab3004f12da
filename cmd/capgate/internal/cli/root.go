package cli

import (
	"slices"

	"github.com/spf13/cobra"
)

// Groups of commands in the help of capgate.
const (
	GroupLoop     = "loop"
	GroupOperator = "operator"
	GroupClient   = "client"
)

// Alone names the command that is built without the others: a loop waits for it before each of its turns.
const Alone = "turn"

// rootFor returns the commands that the command line can mean.
func rootFor(a *App, commands []Command) *cobra.Command {
	at := slices.IndexFunc(commands, func(c Command) bool { return c.Name == Alone })
	if at < 0 || len(a.Args) == 0 || a.Args[0] != Alone {
		return Root(a, commands)
	}
	root := newBareRootCmd(a)
	root.AddCommand(commands[at].New(a))
	root.CompletionOptions.DisableDefaultCmd = true
	return root
}

// Root returns the root with the commands, and those of this package: help, version, completion.
func Root(a *App, commands []Command) *cobra.Command {
	root := newBareRootCmd(a)
	root.Version = a.Build().String()
	for _, c := range commands {
		root.AddCommand(c.New(a))
	}
	root.AddCommand(newVersionCmd(a), newEnvironmentTopic(a))
	root.SetHelpCommand(newHelpCmd(a))
	addCompletionCmd(root)
	return root
}

// newBareRootCmd returns the root with the global flags, and no commands yet.
func newBareRootCmd(a *App) *cobra.Command {
	root := &cobra.Command{
		Use:   "capgate",
		Short: "Stop a coding agent's research loop at its turn cap",
		Long: `capgate stops a coding agent's research loop at its turn cap. A run may spend max-conv-turns x max-dimensions turns;
the ledger counts them, and while a session is armed for a run, the hook denies its searches and subagents at the cap.

The whole loop in one command:
  capgate loop --run R --max-conv-turns 8 -- claude -p "…"

The same in a loop of your own:
  capgate scope open --session S --run R --max-conv-turns 8   # open the run, arm the session
  capgate turn begin --run R        # before each turn: exit status 0 = take it, 2 = the budget is spent, stop
  capgate turn end --run R          # after it
  capgate run show R                # what is spent, what remains
  capgate scope close --session S   # disarm the session

Exit status: 0 done, 1 error, 2 refused by the cap, 3 not healthy. Errors are one line on standard error.`,
		Example: `  capgate loop --run night --max-conv-turns 8 -- claude -p "Go on with the research in notes.md"
  capgate run grant night --turns 2 --reason "two questions are open"
  capgate status`,
		SilenceErrors:     true,
		SilenceUsage:      true,
		DisableAutoGenTag: true,
	}
	// Unknown commands are reported by cobra when it looks for the command; it runs this only without one.
	root.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	root.PersistentPreRunE = func(*cobra.Command, []string) error {
		if a.timeout < 0 {
			return Usagef("--timeout is %v, it must be at least 0", a.timeout)
		}
		return nil
	}
	root.SetIn(a.Stdin)
	root.SetOut(a.Printer) // before addCompletionCmd, which keeps it
	root.SetErr(a.Stderr)
	root.SetVersionTemplate("capgate {{.Version}}\n")
	root.SetUsageTemplate(usageTemplate)
	root.SetFlagErrorFunc(flagError)
	root.CompletionOptions.SetDefaultShellCompDirective(NoFiles)

	flags := root.PersistentFlags()
	flags.Var(&a.StateFlag, "state", "state directory; default CAPGATE_DATA_DIR, else $XDG_STATE_HOME/capgate or ~/.local/state/capgate")
	flags.Var(&a.LedgerFlag, "ledger", "ledger file; default CAPGATE_LEDGER, else ledger.db in the state directory")
	flags.DurationVar(&a.timeout, "timeout", defaultTimeout, "how long to wait for the ledger; 0 = without end")
	flags.BoolVar(&a.AsJSON, "json", false, "print the result as JSON")
	Must(root.MarkPersistentFlagDirname("state"))
	Must(root.MarkPersistentFlagFilename("ledger"))

	root.AddGroup(
		&cobra.Group{ID: GroupLoop, Title: "For the loop:"},
		&cobra.Group{ID: GroupOperator, Title: "For the operator:"},
		&cobra.Group{ID: GroupClient, Title: "For a client's settings:"},
	)
	return root
}

// Parent makes a command of which only the subcommands do something.
func Parent(cmd *cobra.Command, subcommands ...*cobra.Command) *cobra.Command {
	cmd.AddCommand(subcommands...)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) > 0 {
			return UnknownCommand(cmd, args[0])
		}
		return Usagef("%s does nothing alone: it needs a command, %s", cmd.Name(), OneOf(commandNames(cmd)))
	}
	return cmd
}

func commandNames(cmd *cobra.Command) []string {
	var names []string
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			names = append(names, c.Name())
		}
	}
	return names
}
