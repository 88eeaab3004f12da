package admit

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/capgate/capgate/capgate"
	"github.com/capgate/capgate/capgate/admission"
	"github.com/capgate/capgate/capgate/decisionlog"
	"github.com/capgate/capgate/cmd/capgate/internal/cli"
)

func newRevokeCmd(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "revoke ID",
		Short: "End an admission",
		Long: `Ends the admission: it lets nothing more through. What has started is not stopped. Revoking again changes nothing. An
agent may do this, too, since it only takes away.`,
		Example:           `  capgate admit revoke 01JD8XJ6S0W5T0V9Z1Q2R3M4N5`,
		Args:              cli.OneArg("the id of an admission", "one id"),
		ValidArgsFunction: completeOpen(a),
		RunE: a.Do(func(cmd *cobra.Command, args []string) error {
			return revoke(a, cmd, args[0])
		}),
	}
}

// revoked is what `admit revoke --json` prints.
type revoked struct {
	shown
	Replayed bool `json:"replayed"` // it was revoked before
}

func revoke(a *cli.App, cmd *cobra.Command, id string) error {
	state, err := a.StateDir()
	if err != nil {
		return err
	}
	before, found, err := find(state, id)
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
	if read, found, err := find(state, id); err == nil && found {
		after = read // with what was used in the meantime
	}
	replayed := before.Revoked != nil
	if !replayed {
		a.Changed()
		record(a, state, capgate.CodeAdmitRevoked, decisionlog.NewID(now), after)
	}
	if a.AsJSON {
		return a.JSON(revoked{show(after, now), replayed})
	}
	already := ""
	if replayed {
		already = " already"
	}
	a.Printf("%s is revoked%s: %s %s used\n", after.ID, already, usedOf(after), after.Type)
	return nil
}

func find(state, id string) (ad admission.Admission, found bool, err error) {
	admissions, err := admission.List(state)
	i := slices.IndexFunc(admissions, func(ad admission.Admission) bool { return strings.EqualFold(ad.ID, id) })
	if err != nil || i < 0 {
		return admission.Admission{}, false, err
	}
	return admissions[i], true, nil
}

// completeOpen offers the ids of admissions that are open, newest first.
func completeOpen(a *cli.App) cobra.CompletionFunc {
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
