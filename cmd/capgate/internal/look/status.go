// Package look has the commands by which a person sees what capgate does: status, log and explain. They only read.
package look

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/capgate/capgate/capgate"
	"github.com/capgate/capgate/cmd/capgate/internal/cli"
	"github.com/capgate/capgate/cmd/capgate/internal/hearing"
	"github.com/capgate/capgate/ledger"
	"github.com/capgate/capgate/scope"
)

// NewStatus returns the command status.
func NewStatus(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:     "status",
		GroupID: cli.GroupOperator,
		Short:   "Show at a glance whether the cap works, and for whom",
		Long: `Shows the state directory, whether the cap and the gates are on in this shell's environment, and each armed session:
its run, what is spent, and when its hook was last heard. A session whose run has recorded turns while its hook has not
been heard since it was armed is marked "hook: silent": then only the loop's own check holds (capgate turn), and
capgate doctor says why.`,
		Example: `  capgate status
  capgate status --json`,
		Args: cli.NoArgs,
		RunE: a.Do(func(cmd *cobra.Command, _ []string) error { return status(a, cmd) }),
	}
}

// Report is what `status --json` prints.
type Report struct {
	State    string    `json:"state"`
	Ledger   string    `json:"ledger"`
	Cap      bool      `json:"cap"`   // on in this environment
	Gates    bool      `json:"gates"` // on in this environment
	Sessions []Session `json:"sessions"`
}

// Session is one armed session.
type Session struct {
	Session string       `json:"session"`
	Run     string       `json:"run,omitempty"`
	Used    int64        `json:"used"`
	Limit   int64        `json:"limit"`
	Expired bool         `json:"expired"`
	Heard   *time.Time   `json:"heard,omitempty"` // when the hook was last heard in scope
	Hook    hearing.Word `json:"hook"`
	Problem string       `json:"problem,omitempty"`
}

func status(a *cli.App, cmd *cobra.Command) error {
	state, err := a.StateDir()
	if err != nil {
		return err
	}
	c, err := a.Config()
	if err != nil {
		return err
	}
	path, err := a.LedgerPath()
	if err != nil {
		return err
	}
	l, err := a.OpenLedger()
	if err != nil {
		return err
	}
	markers, err := scope.List(state)
	if err != nil && !errors.Is(err, scope.ErrNone) {
		return err
	}
	report := Report{State: state, Ledger: path, Cap: c.CapOn(), Gates: c.GatesActive(), Sessions: []Session{}}
	ttl := c.ScopeTTL.Duration(capgate.DefaultScopeTTL)
	ctx, cancel := a.Context(cmd)
	defer cancel()
	for _, m := range markers {
		s := Session{Session: m.Session, Run: m.Run, Expired: m.Expired(a.Now(), ttl)}
		if at, ok := scope.Heard(state, m.Session); ok {
			s.Heard = &at
		}
		u, err := ledger.Usage{}, m.Err
		if err == nil {
			u, err = l.Usage(ctx, m.Run)
		}
		if err != nil {
			s.Problem = err.Error()
		}
		s.Used, s.Limit = u.Used, u.Limit
		s.Hook = hearing.Silence(hearing.Status, hearing.Facts{Heard: !m.Silent(state), Used: u.Used, NewestAt: u.LastAt, ArmedAt: m.ModTime})
		report.Sessions = append(report.Sessions, s)
	}
	if a.AsJSON {
		return a.JSON(report)
	}
	printStatus(a.Printer, report)
	return nil
}

func printStatus(out *cli.Printer, r Report) {
	onOff := map[bool]string{true: "on", false: "off"}
	out.Printf("state   %s\nledger  %s\ncap     %s in this environment\ngates   %s in this environment\n",
		r.State, r.Ledger, onOff[r.Cap], onOff[r.Gates])
	if len(r.Sessions) == 0 {
		out.Printf("\nno session is armed\n")
		return
	}
	out.Printf("\n")
	rows := [][]string{{"SESSION", "RUN", "USED", "HOOK", "NOTE"}}
	for _, s := range r.Sessions {
		hook := "hook: " + string(s.Hook)
		if s.Heard != nil && s.Hook == hearing.Heard {
			hook += " " + cli.Stamp(*s.Heard)
		}
		note := s.Problem
		switch {
		case note != "":
		case s.Expired:
			note = "expired"
		case s.Hook == hearing.Silent:
			note = "turns are recorded, but the hook judges nothing: run capgate doctor"
		}
		rows = append(rows, []string{s.Session, s.Run, fmt.Sprintf("%d of %d", s.Used, s.Limit), hook, note})
	}
	out.Table(rows...)
}
