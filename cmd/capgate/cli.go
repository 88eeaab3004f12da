package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/capgate/capgate/capgate"
	"github.com/capgate/capgate/gates"
	"github.com/capgate/capgate/ledger"
)

// Exit statuses.
const (
	StatusDone    = 0 // what was asked is done
	StatusError   = 1 // it is not, or its result could not be written; one line on standard error says why
	StatusRefused = 2 // the cap refused the turn; one line on standard error says what is spent
)

// defaultTimeout bounds how long a command waits for the ledger: long enough for any queue of loops on one ledger,
// short enough that a stuck one is noticed.
const defaultTimeout = 10 * time.Second

// Outside is everything a command takes from the outside world.
type Outside struct {
	Args           []string // without the program's name
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	Lookup         capgate.Lookup                 // an environment variable
	Config         func() (capgate.Config, error) // the configuration in the same environment
	Now            func() time.Time
}

// Main runs one command line and returns its exit status.
func Main(o Outside) (status int) {
	o.Config = sync.OnceValues(o.Config)
	a := &app{Outside: o, out: bufio.NewWriter(o.Stdout)}
	// Go ends a program that panics with status 2, which is our word for a refusal.
	defer func() {
		if p := recover(); p != nil {
			done := ""
			if a.changes {
				done = "; what was asked is done all the same"
			}
			fmt.Fprintf(o.Stderr, "capgate: this is a bug in capgate, please report it: %s%s\n", gates.Visible(fmt.Sprint(p)), done)
			status = StatusError
		}
	}()
	root := rootFor(a)
	root.SetArgs(o.Args)

	cmd, err := root.ExecuteC()
	if werr := a.out.Flush(); werr != nil {
		err = fmt.Errorf("cannot write the result: %w", werr)
		if a.changes {
			err = fmt.Errorf("%w; what was asked is done all the same", err)
		}
		a.ran = true
	}
	if err == nil {
		return StatusDone
	}
	message := err.Error()
	if _, ok := errors.AsType[usageError](err); ok || !a.ran {
		message = usageMessage(message, cmd)
	}
	fmt.Fprintf(o.Stderr, "capgate: %s\n", gates.Visible(message))
	if errors.Is(err, ledger.ErrBudgetSpent) {
		return StatusRefused
	}
	if _, ok := errors.AsType[unhealthy](err); ok {
		return StatusUnhealthy
	}
	return StatusError
}

// app is one command line being run.
type app struct {
	Outside
	out *bufio.Writer // standard output; it keeps its first error, which Main reports

	// Global flags.
	state, ledgerFile flagText
	timeout           time.Duration
	json              bool

	ran     bool // a command has begun its work: an error before that is one of usage
	changes bool // the command has changed something that stays changed when its result cannot be written
}

// do wraps what a command does.
func (a *app) do(run func(cmd *cobra.Command, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		a.ran = true
		return run(cmd, args)
	}
}

// context returns the context of one operation on the ledger, bounded by --timeout.
func (a *app) context(cmd *cobra.Command) (context.Context, context.CancelFunc) {
	if a.timeout == 0 {
		return unbounded(cmd)
	}
	return context.WithTimeout(cmd.Context(), a.timeout)
}

// unbounded returns the context of a walk over the whole ledger: how long that takes is no sign of trouble. It has a
// deadline, since a ledger sets its own where there is none.
func unbounded(cmd *cobra.Command) (context.Context, context.CancelFunc) {
	const forever = 10 * 365 * 24 * time.Hour
	return context.WithTimeout(cmd.Context(), forever)
}

// Groups of commands in the help of capgate.
const (
	groupLoop     = "loop"
	groupOperator = "operator"
	groupClient   = "client"
)

// rootFor returns the commands that the command line can mean. A loop waits for turn before each of its turns, so the
// other commands are not built for it.
func rootFor(a *app) *cobra.Command {
	if len(a.Args) == 0 || a.Args[0] != "turn" {
		return newRootCmd(a)
	}
	root := newBareRootCmd(a)
	root.AddCommand(newTurnCmd(a))
	root.CompletionOptions.DisableDefaultCmd = true
	return root
}

// newRootCmd returns all commands.
func newRootCmd(a *app) *cobra.Command {
	root := newBareRootCmd(a)
	root.Version = buildInfo().String()
	root.AddCommand(
		newScopeCmd(a),
		newTurnCmd(a),
		newRunCmd(a),
		newLedgerCmd(a),
		newStatusCmd(a),
		newLogCmd(a),
		newExplainCmd(a),
		newSpecCmd(a),
		newAdmitCmd(a),
		newInstallCmd(a),
		newDoctorCmd(a),
		newUninstallCmd(a),
		newOMPCmd(a),
		newProbeCmd(a), newProbeHookCmd(a),
		newPluginCmd(a),
		newHookCmd(a),
		newVersionCmd(a),
		newEnvironmentTopic(a),
	)
	root.SetHelpCommand(newHelpCmd(a))
	addCompletionCmd(a, root)
	return root
}

// newBareRootCmd returns the root with the global flags, and no commands yet.
func newBareRootCmd(a *app) *cobra.Command {
	root := &cobra.Command{
		Use:   "capgate",
		Short: "Stop a coding agent's research loop at its turn cap",
		Long: `capgate stops a coding agent's research loop at its turn cap. A run may spend max-conv-turns x max-dimensions turns;
the ledger counts them, and while a session is armed for a run, the hook denies its searches and subagents at the cap.

The loop:
  capgate scope open --session S --run R --max-conv-turns 4 --max-dimensions 2   # open the run, arm the session
  capgate turn --run R --dimension D    # before each turn: exit status 0 = go on, 2 = the budget is spent, stop
  capgate run show R                    # what is spent, what remains
  capgate scope close --session S       # disarm the session
  capgate run close R                   # end the run

Exit status: 0 done, 1 error, 2 refused by the cap. Errors are one line on standard error.`,
		Example: `  capgate scope open --run storm-42 --max-conv-turns 4 --max-dimensions 2
  capgate turn --run storm-42 --dimension economics --key interview-7
  capgate run show storm-42 --json`,
		SilenceErrors:     true,
		SilenceUsage:      true,
		DisableAutoGenTag: true,
	}
	// Unknown commands are reported by cobra when it looks for the command; it runs this only without one.
	root.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	root.PersistentPreRunE = func(*cobra.Command, []string) error {
		if a.timeout < 0 {
			return usagef("--timeout is %v, it must be at least 0", a.timeout)
		}
		return nil
	}
	root.SetIn(a.Stdin)
	root.SetOut(a.out) // before addCompletionCmd, which keeps it
	root.SetErr(a.Stderr)
	root.SetVersionTemplate("capgate {{.Version}}\n")
	root.SetUsageTemplate(usageTemplate)
	root.SetFlagErrorFunc(flagError)
	root.CompletionOptions.SetDefaultShellCompDirective(cobra.ShellCompDirectiveNoFileComp)

	flags := root.PersistentFlags()
	flags.Var(&a.state, "state", "state directory; default CAPGATE_DATA_DIR, else $XDG_STATE_HOME/capgate or ~/.local/state/capgate")
	flags.Var(&a.ledgerFile, "ledger", "ledger file; default CAPGATE_LEDGER, else ledger.db in the state directory")
	flags.DurationVar(&a.timeout, "timeout", defaultTimeout, "how long to wait for the ledger; 0 = without end")
	flags.BoolVar(&a.json, "json", false, "print the result as JSON")
	must(root.MarkPersistentFlagDirname("state"))
	must(root.MarkPersistentFlagFilename("ledger"))

	root.AddGroup(
		&cobra.Group{ID: groupLoop, Title: "For the loop:"},
		&cobra.Group{ID: groupOperator, Title: "For the operator:"},
		&cobra.Group{ID: groupClient, Title: "For a client's settings:"},
	)
	return root
}

// group makes a command of which only the subcommands do something.
func group(cmd *cobra.Command, subcommands ...*cobra.Command) *cobra.Command {
	cmd.AddCommand(subcommands...)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) > 0 {
			return unknownCommand(cmd, args[0])
		}
		return usagef("%s does nothing alone: it needs a command, %s", cmd.Name(), oneOf(commandNames(cmd)))
	}
	return cmd
}

// usageError is a command line that cannot be run.
type usageError string

func (e usageError) Error() string { return string(e) }

func usagef(format string, args ...any) error {
	return usageError(fmt.Sprintf(format, args...))
}

// usageMessage makes one line of what cobra or we have to say about a command line, and adds where to read on.
func usageMessage(message string, cmd *cobra.Command) string {
	message, guesses, found := strings.Cut(message, "\n\nDid you mean this?\n")
	if found {
		message += didYouMean(strings.Fields(guesses))
	}
	return fmt.Sprintf("%s (see %s --help)", message, cmd.CommandPath())
}

// flagError replaces cobra's complaint about a flag by the one about the command, where that is what is wrong: a
// mistyped subcommand's flags are unknown to its parent.
func flagError(cmd *cobra.Command, err error) error {
	if args := cmd.Flags().Args(); cmd.HasSubCommands() && len(args) > 0 {
		return unknownCommand(cmd, args[0])
	}
	if invalid, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		flag := invalid.GetFlag()
		return usagef("--%s cannot be %q: it takes %s", flag.Name, invalid.GetValue(), valueWords(flag.Value.Type()))
	}
	return err
}

// valueWords tells the kind of a flag's value.
func valueWords(kind string) string {
	switch kind {
	case "int", "int64":
		return "a whole number"
	case "duration":
		return "a duration such as 10s"
	case "bool":
		return "true or false"
	}
	return "some text"
}

func unknownCommand(cmd *cobra.Command, name string) error {
	if cmd.SuggestionsMinimumDistance <= 0 {
		cmd.SuggestionsMinimumDistance = 2 // cobra's own default, which it sets only for the root
	}
	return usagef("unknown command %q for %q%s", name, cmd.CommandPath(), didYouMean(cmd.SuggestionsFor(name)))
}

func didYouMean(names []string) string {
	if len(names) == 0 {
		return ""
	}
	return ", did you mean " + oneOf(names) + "?"
}

// oneOf lists names as "a, b or c".
func oneOf(names []string) string {
	last := len(names) - 1
	if last < 1 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:last], ", ") + " or " + names[last]
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

// noArgs is for commands that take flags only.
func noArgs(_ *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usagef("unexpected argument %q", args[0])
	}
	return nil
}

// runArg is for commands that take one run id.
func runArg(cmd *cobra.Command, args []string) error {
	switch {
	case len(args) == 0 || args[0] == "":
		return usagef("%s needs a run id", cmd.Name())
	case len(args) > 1:
		return usagef("unexpected argument %q: %s takes one run id", args[1], cmd.Name())
	}
	return nil
}

// flagText is a flag that must not be given as "": an unset shell variable must not stand for the default.
type flagText string

func (f *flagText) String() string { return string(*f) }
func (f *flagText) Type() string   { return "string" }
func (f *flagText) Set(s string) error {
	if s == "" {
		return errors.New("it is empty")
	}
	*f = flagText(s)
	return nil
}

// requireFlags marks flags as ones without which the command does not run.
func requireFlags(cmd *cobra.Command, names ...string) {
	for _, name := range names {
		must(cmd.MarkFlagRequired(name))
	}
	// Before cobra looks at the marks, which are for completion: all that is missing, as it is typed.
	cmd.PreRunE = func(cmd *cobra.Command, _ []string) error {
		var missing []string
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if f.Annotations[cobra.BashCompOneRequiredFlag] != nil && !f.Changed {
				missing = append(missing, "--"+f.Name)
			}
		})
		if len(missing) > 0 {
			return usagef("missing %s", strings.Join(missing, ", "))
		}
		return nil
	}
}

// must reports mistakes in how commands are built, which no input can cause.
func must(err error) {
	if err != nil {
		panic(err)
	}
}
