package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// usageError is a command line that cannot be run.
type usageError string

func (e usageError) Error() string { return string(e) }

// Usagef returns an error about the command line itself: its message says where to read on.
func Usagef(format string, args ...any) error {
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
		return UnknownCommand(cmd, args[0])
	}
	if invalid, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		flag := invalid.GetFlag()
		return Usagef("--%s cannot be %q: it takes %s", flag.Name, invalid.GetValue(), valueWords(flag.Value.Type()))
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

// UnknownCommand returns the error of a word that is no command below cmd, with those that it may have meant.
func UnknownCommand(cmd *cobra.Command, name string) error {
	if cmd.SuggestionsMinimumDistance <= 0 {
		cmd.SuggestionsMinimumDistance = 2 // cobra's own default, which it sets only for the root
	}
	return Usagef("unknown command %q for %q%s", name, cmd.CommandPath(), didYouMean(cmd.SuggestionsFor(name)))
}

func didYouMean(names []string) string {
	if len(names) == 0 {
		return ""
	}
	return ", did you mean " + OneOf(names) + "?"
}

// OneOf lists names as "a, b or c".
func OneOf(names []string) string {
	last := len(names) - 1
	if last < 1 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:last], ", ") + " or " + names[last]
}

// NoArgs is for commands that take flags only.
func NoArgs(_ *cobra.Command, args []string) error {
	if len(args) > 0 {
		return Usagef("unexpected argument %q", args[0])
	}
	return nil
}

// OneArg is for commands that take exactly one argument. needs says what a command line without it lacks, one what the
// command takes: "a run id" and "one run id".
func OneArg(needs, one string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 || args[0] == "" {
			return Usagef("%s needs %s", cmd.Name(), needs)
		}
		return AtMostOneArg(one)(cmd, args)
	}
}

// AtMostOneArg is for commands that take one argument or none. one says what they take: "one id".
func AtMostOneArg(one string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) > 1 {
			return Usagef("unexpected argument %q: %s takes %s", args[1], cmd.Name(), one)
		}
		return nil
	}
}

// RunArg is for commands that take one run id.
var RunArg = OneArg("a run id", "one run id")

// Must reports mistakes in how commands are built, which no input can cause.
func Must(err error) {
	if err != nil {
		panic(err)
	}
}
