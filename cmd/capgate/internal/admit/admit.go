// Package admit has the commands by which an operator admits subagents beforehand, and takes that back.
package admit

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/capgate/capgate/capgate"
	"github.com/capgate/capgate/capgate/admission"
	"github.com/capgate/capgate/capgate/decisionlog"
	"github.com/capgate/capgate/capgate/hook"
	"github.com/capgate/capgate/cmd/capgate/internal/cli"
	"github.com/capgate/capgate/gates"
	"github.com/capgate/capgate/scope"
)

// defaultFor is how long an admission holds: long enough to start what it is for, no longer.
const defaultFor = 10 * time.Minute

type options struct {
	subagent, session, reason cli.Text
	uses                      int
	time                      time.Duration
}

// New returns the command admit.
func New(a *cli.App) *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:     "admit --type TYPE --reason TEXT",
		GroupID: cli.GroupOperator,
		Short:   "Admit subagents beforehand, where nobody can be asked or none may start",
		Long: `Lets a number of subagents of one type start without the question that the admission gate would ask, or past its denial:
exactly as many as are admitted, counted by tool call, for as long as the admission holds. The other gates judge those
calls as ever. Admissions are in the state directory, which must be the one that the client's environment names.

An agent must not admit its own subagents, so this is refused in a shell that an agent uses. Listing and revoking are
not: revoking only takes away.`,
		Example: `  capgate admit --type scout --reason "nightly run"
  capgate admit --type scout --uses 3 --for 8h --session S --reason "nightly run"
  capgate admit list --all
  capgate admit revoke 01JD8XJ6S0W5T0V9Z1Q2R3M4N5`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return cli.UnknownCommand(cmd, args[0])
			}
			return nil
		},
		RunE: a.Do(func(cmd *cobra.Command, _ []string) error {
			return admit(a, cmd, o)
		}),
	}
	cmd.AddCommand(newListCmd(a), newRevokeCmd(a))
	cli.ShowUseLine(cmd)
	cmd.Flags().Var(&o.subagent, "type", "type of the subagents, exactly as it is declared")
	cmd.Flags().IntVar(&o.uses, "uses", 1, fmt.Sprintf("how many may start, 1 to %d", admission.MaxUses))
	cmd.Flags().DurationVar(&o.time, "for", defaultFor, "how long the admission holds, at most 720h")
	cmd.Flags().Var(&o.session, "session", "the only session that it is for; default any")
	cmd.Flags().Var(&o.reason, "reason", "why; kept with the admission and in the decision log")
	cli.RequireFlags(cmd, "type", "reason")
	cli.Must(cmd.RegisterFlagCompletionFunc("type", completeDeclared(a)))
	cli.Must(cmd.RegisterFlagCompletionFunc("session", a.Sessions))
	return cmd
}

func admit(a *cli.App, cmd *cobra.Command, o options) error {
	kind, reason := string(o.subagent), string(o.reason)
	switch {
	case strings.TrimSpace(kind) != kind, gates.Visible(kind) != kind:
		return cli.Usagef("--type is %q: give one type without white space around it and without invisible characters", kind)
	case o.uses < 1 || o.uses > admission.MaxUses:
		return cli.Usagef("--uses is %d, it must be 1 to %d", o.uses, admission.MaxUses)
	case o.time <= 0 || o.time > admission.MaxFor:
		return cli.Usagef("--for is %v, it must be more than 0 and at most 720h", o.time)
	case o.session != "" && !scope.ValidSession(string(o.session)):
		return cli.Usagef("--session %.140q can be no session's id: take it from capgate log, or leave it out", string(o.session))
	case strings.TrimSpace(reason) == "":
		return cli.Usagef("--reason is blank: say why")
	}
	if err := a.OperatorOnly("nothing is admitted"); err != nil {
		return err
	}
	state, err := a.StateDir()
	if err != nil {
		return err
	}
	if err := cli.MakeStateDir(state); err != nil {
		return err
	}
	now := a.Now().UTC()
	ad := admission.Admission{
		ID: decisionlog.NewID(now), Type: kind, Session: string(o.session), Uses: o.uses, Reason: reason, At: now, Until: now.Add(o.time),
	}
	ctx, cancel := a.Context(cmd)
	defer cancel()
	if err := admission.Add(ctx, state, ad); err != nil {
		return whileLocked(err)
	}
	a.Changed()
	record(a, state, capgate.CodeAdmit, ad.ID, ad)
	if types, known := declared(a); known && !slices.Contains(types, kind) {
		a.Warn("%s is not declared, so the type gate denies it all the same: declare it, or revoke this", kind)
	}
	if a.AsJSON {
		return a.JSON(show(ad, now))
	}
	where := "any session"
	if ad.Session != "" {
		where = "session " + ad.Session
	}
	a.Printf("%s lets %s start in %s, until %s\n", ad.ID, cli.Plural(ad.Uses, ad.Type+" subagent"), where, cli.Stamp(ad.Until))
	return nil
}

// declared returns the subagent types of the spec, or else of the list, in this shell's environment. Where neither is
// there or readable, nothing is known.
func declared(a *cli.App) (types []string, known bool) {
	c, err := a.Config()
	if err != nil || !c.Declares() {
		return nil, false
	}
	if c.Spec == "" {
		return c.AllowedSubagents.Names(), true
	}
	s, err := hook.ReadSpec(c.Spec)
	return s.Allowed(), err == nil
}

// completeDeclared offers the types that are declared.
func completeDeclared(a *cli.App) cobra.CompletionFunc {
	return func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		types, _ := declared(a)
		var found []string
		for _, t := range types {
			found = cli.Candidate(found, t, "")
		}
		return found, cli.NoFiles
	}
}
