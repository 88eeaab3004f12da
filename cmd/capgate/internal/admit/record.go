package admit

import (
	"errors"
	"fmt"

	"github.com/capgate/capgate/capgate/admission"
	"github.com/capgate/capgate/capgate/decisionlog"
	"github.com/capgate/capgate/cmd/capgate/internal/cli"
	"github.com/capgate/capgate/gates"
)

// whileLocked says what to do about a lock that others hold for too long.
func whileLocked(err error) error {
	if errors.Is(err, admission.ErrBusy) {
		return fmt.Errorf("%w: try again, or wait longer with --timeout", err)
	}
	return err
}

// record tells the decision log. Like the hook's own lines this is best effort: what was done is done.
func record(a *cli.App, state, code, id string, ad admission.Admission) {
	_ = decisionlog.Append(state, decisionlog.Record{
		ID: id, At: a.Now().UTC(), Client: "capgate", Code: code, Outcome: gates.Pass.String(),
		Session: ad.Session, AgentType: ad.Type, Admission: ad.ID, Reason: ad.Reason,
	})
}
