package main

import (
	"errors"
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

// agentVariable is what clients set in the shells that their agents use.
const agentVariable = "CLAUDECODE"

// defaultAdmitFor is how long an admission holds: long enough to start what it is for, no longer.
const defaultAdmitFor = 10 * time.Minute

type admitOptions struct {
	subagent, session, reason cli.Text
	uses                      int
	time                      time.Duration
}

func newAdmitCmd(a *cli.App) *cobra.Command {
	var o admitOptions
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
	cmd.AddCommand(newAdmitListCmd(a), newAdmitRevokeCmd(a))
	cli.ShowUseLine(cmd)
	cmd.Flags().Var(&o.subagent, "type", "type of the subagents, exactly as it is declared")
	cmd.Flags().IntVar(&o.uses, "uses", 1, fmt.Sprintf("how many may start, 1 to %d", admission.MaxUses))
	cmd.Flags().DurationVar(&o.time, "for", defaultAdmitFor, "how long the admission holds, at most 720h")
	cmd.Flags().Var(&o.session, "session", "the only session that it is for; default any")
	cmd.Flags().Var(&o.reason, "reason", "why; kept with the admission and in the decision log")
	cli.RequireFlags(cmd, "type", "reason")
	cli.Must(cmd.RegisterFlagCompletionFunc("type", completeDeclared(a)))
	cli.Must(cmd.RegisterFlagCompletionFunc("session", a.Sessions))
	return cmd
}

// admissionShown is what `admit --json` prints, and one element of what `admit list --json` does.
type admissionShown struct {
	admission.Admission
	State string `json:"state"` // "open", "spent", "expired" or "revoked"
	Left  int    `json:"left"`  // spawns that it still lets through
}

func showAdmission(ad admission.Admission, now time.Time) admissionShown {
	s := admissionShown{Admission: ad, State: ad.State(now)}
	if s.Spent == nil {
		s.Spent = []admission.Use{} // "[]", never "null"
	}
	if s.State == "open" {
		s.Left = ad.Uses - len(ad.Spent)
	}
	return s
}

func admit(a *cli.App, cmd *cobra.Command, o admitOptions) error {
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
	if v, _ := a.Lookup(agentVariable); v != "" {
		return fmt.Errorf("nothing is admitted, because this shell is an agent's (%s is set) and an agent must not admit its own subagents: run it in a terminal of your own", agentVariable)
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
	logAdmission(a, state, capgate.CodeAdmit, ad.ID, ad)
	if types, known := declared(a); known && !slices.Contains(types, kind) {
		a.Warn("%s is not declared, so the type gate denies it all the same: declare it, or revoke this", kind)
	}
	if a.AsJSON {
		return a.JSON(showAdmission(ad, now))
	}
	where := "any session"
	if ad.Session != "" {
		where = "session " + ad.Session
	}
	a.Printf("%s lets %s start in %s, until %s\n", ad.ID, cli.Plural(ad.Uses, ad.Type+" subagent"), where, cli.Stamp(ad.Until))
	return nil
}

// whileLocked says what to do about a lock that others hold for too long.
func whileLocked(err error) error {
	if errors.Is(err, admission.ErrBusy) {
		return fmt.Errorf("%w: try again, or wait longer with --timeout", err)
	}
	return err
}

// logAdmission tells the decision log. Like the hook's own lines this is best effort: what was done is done.
func logAdmission(a *cli.App, state, code, id string, ad admission.Admission) {
	_ = decisionlog.Append(state, decisionlog.Record{
		ID: id, At: a.Now().UTC(), Client: "capgate", Code: code, Outcome: gates.Pass.String(),
		Session: ad.Session, AgentType: ad.Type, Admission: ad.ID, Reason: ad.Reason,
	})
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

func newAdmitListCmd(a *cli.App) *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the admissions that still let something through",
		Long: `Lists the admissions that are open, oldest first, with how much of each is used. With --all also those that are spent,
expired or revoked, which are kept for a week.`,
		Example: `  capgate admit list
  capgate admit list --all --json`,
		Args: cli.NoArgs,
		RunE: a.Do(func(*cobra.Command, []string) error {
			return admitList(a, all)
		}),
	}
	cmd.Flags().BoolVar(&all, "all", false, "also what is spent, expired or revoked")
	return cmd
}

func admitList(a *cli.App, all bool) error {
	state, err := a.StateDir()
	if err != nil {
		return err
	}
	admissions, err := admission.List(state)
	if err != nil {
		return err
	}
	shown := []admissionShown{}
	rows := [][]string{{"ID", "STATE", "TYPE", "SESSION", "USED", "UNTIL", "REASON"}}
	for _, ad := range admissions {
		s := showAdmission(ad, a.Now())
		if s.State != "open" && !all {
			continue
		}
		shown = append(shown, s)
		rows = append(rows, []string{
			s.ID, s.State, s.Type, s.Session, usedOf(ad), cli.Stamp(s.Until), s.Reason,
		})
	}
	switch {
	case a.AsJSON:
		return a.JSON(shown)
	case len(shown) > 0:
		a.Table(rows...)
	case all:
		a.Printf("no admission in %s\n", state)
	default:
		a.Printf("no open admission in %s\n", state)
	}
	return nil
}

func usedOf(ad admission.Admission) string { return fmt.Sprintf("%d of %d", len(ad.Spent), ad.Uses) }

func newAdmitRevokeCmd(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "revoke ID",
		Short: "End an admission",
		Long: `Ends the admission: it lets nothing more through. What has started is not stopped. Revoking again changes nothing. An
agent may do this, too, since it only takes away.`,
		Example:           `  capgate admit revoke 01JD8XJ6S0W5T0V9Z1Q2R3M4N5`,
		Args:              cli.OneArg("the id of an admission", "one id"),
		ValidArgsFunction: completeAdmissions(a),
		RunE: a.Do(func(cmd *cobra.Command, args []string) error {
			return admitRevoke(a, cmd, args[0])
		}),
	}
}

// admissionRevoked is what `admit revoke --json` prints.
type admissionRevoked struct {
	admissionShown
	Replayed bool `json:"replayed"` // it was revoked before
}

func admitRevoke(a *cli.App, cmd *cobra.Command, id string) error {
	state, err := a.StateDir()
	if err != nil {
		return err
	}
	before, found, err := findAdmission(state, id)
	if err != nil {
		return err
	}
	if !found { // also where there is no state directory to lock
		return fmt.Errorf("%w: %s in %s: capgate admit list --all shows those that are there", admission.ErrNotFound, id, state)
	}
	ctx, cancel := a.Context(cmd)
	defer cancel()
	now := a.Now().UTC()
	if err := admission.Revoke(ctx, state, id, now); err != nil {
		return whileLocked(err)
	}
	after := before
	if read, found, err := findAdmission(state, id); err == nil && found {
		after = read // with what was used in the meantime
	}
	replayed := before.Revoked != nil
	if !replayed {
		a.Changed()
		logAdmission(a, state, capgate.CodeAdmitRevoked, decisionlog.NewID(now), after)
	}
	if a.AsJSON {
		return a.JSON(admissionRevoked{showAdmission(after, now), replayed})
	}
	already := ""
	if replayed {
		already = " already"
	}
	a.Printf("%s is revoked%s: %s %s used\n", after.ID, already, usedOf(after), after.Type)
	return nil
}

func findAdmission(state, id string) (ad admission.Admission, found bool, err error) {
	admissions, err := admission.List(state)
	i := slices.IndexFunc(admissions, func(ad admission.Admission) bool { return strings.EqualFold(ad.ID, id) })
	if err != nil || i < 0 {
		return admission.Admission{}, false, err
	}
	return admissions[i], true, nil
}

// completeAdmissions offers the ids of admissions that are open, newest first.
func completeAdmissions(a *cli.App) cobra.CompletionFunc {
	return func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		state, err := a.StateDir()
		if err != nil || len(args) > 0 {
			return nil, cli.NoFiles
		}
		admissions, err := admission.List(state)
		if err != nil {
			return nil, cli.NoFiles
		}
		var found []string
		for _, ad := range slices.Backward(admissions) {
			if ad.State(a.Now()) == "open" {
				found = cli.Candidate(found, ad.ID, fmt.Sprintf("%s, %s used, until %s", ad.Type, usedOf(ad), cli.Stamp(ad.Until)))
			}
		}
		return found, cli.NoFiles | cobra.ShellCompDirectiveKeepOrder
	}
}
