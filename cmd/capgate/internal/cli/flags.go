package cli

import (
	"errors"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/capgate/capgate/capgate/client"
)

// Text is the value of a flag that must not be given as "": an unset shell variable must not stand for the default.
type Text string

// String returns the text.
func (f *Text) String() string { return string(*f) }

// Type names the kind of the value in the help.
func (f *Text) Type() string { return "string" }

// Set takes the text that was given.
func (f *Text) Set(s string) error {
	if s == "" {
		return errors.New("it is empty")
	}
	*f = Text(s)
	return nil
}

// RequireFlags marks flags as ones without which the command does not run.
func RequireFlags(cmd *cobra.Command, names ...string) {
	for _, name := range names {
		Must(cmd.MarkFlagRequired(name))
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
			return Usagef("missing %s", strings.Join(missing, ", "))
		}
		return nil
	}
}

// LinesFlag adds -n to a command that prints the newest of something.
func LinesFlag(cmd *cobra.Command, n *int, meaning string) {
	cmd.Flags().IntVarP(n, "lines", "n", 10, meaning)
}

// AtLeastOne checks the number that was given by a flag.
func AtLeastOne[N int | int64](flag string, n N) error {
	if n < 1 {
		return Usagef("%s is %d, it must be at least 1", flag, n)
	}
	return nil
}

// ClientFlag adds --client to a command.
func ClientFlag(cmd *cobra.Command, name *string, meaning string) {
	cmd.Flags().StringVar(name, "client", client.Claude, meaning+": "+OneOf(client.Names))
	Must(cmd.RegisterFlagCompletionFunc("client", Words(client.Names...)))
}

// CheckClient checks the client that --client names.
func CheckClient(name string) error {
	if !slices.Contains(client.Names, name) {
		return Usagef("--client is %q: it takes %s", name, OneOf(client.Names))
	}
	return nil
}
