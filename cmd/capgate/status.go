package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/capgate/capgate/capgate"
	"github.com/capgate/capgate/cmd/capgate/internal/cli"
	"github.com/capgate/capgate/ledger"
	"github.com/capgate/capgate/scope"
)

func newStatusCmd(a *cli.App) *cobra.Command {
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

// statusReport is what `status --json` prints.
type statusReport struct {
	State    string          `json:"state"`
	Ledger   string          `json:"ledger"`
	Cap      bool            `json:"cap"`   // on in this environment
	Gates    bool            `json:"gates"` // on in this environment
	Sessions []statusSession `json:"sessions"`
}

type statusSession struct {
	Session string     `json:"session"`
	Run     string     `json:"run,omitempty"`
	Used    int64      `json:"used"`
	Limit   int64      `json:"limit"`
	Expired bool       `json:"expired"`
	Heard   *time.Time `json:"heard,omitempty"` // when the hook was last heard in scope
	Hook    string     `json:"hook"`            // "heard", "silent" or "not heard yet"
	Problem string     `json:"problem,omitempty"`
}

// Words for whether a session's hook was heard.
const (
	hookHeard  = "heard"
	hookSilent = "silent"
	hookNotYet = "not heard yet"
)

// hookWord says whether the hook of a session was heard. Until its run has recorded a turn after the session was armed,
// silence means nothing: the loop may not have searched yet.
func hookWord(a *cli.App, cmd *cobra.Command, state string, m scope.Listed) string {
	if m.Err != nil {
		return hookNotYet
	}
	if !m.Silent(state) {
		return hookHeard
	}
	l, err := a.OpenLedger()
	if err != nil {
		return hookNotYet
	}
	ctx, cancel := a.Context(cmd)
	defer cancel()
	u, err := l.Usage(ctx, m.Run)
	if err != nil {
		return hookNotYet
	}
	return silence(m.Marker, u)
}

// silence says what it means that the hook of an armed session was not heard.
func silence(m scope.Marker, u ledger.Usage) string {
	if u.Used > 0 && u.LastAt.After(m.ModTime) {
		return hookSilent
	}
	return hookNotYet
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
	report := statusReport{State: state, Ledger: path, Cap: c.CapOn(), Gates: c.GatesActive(), Sessions: []statusSession{}}
	ttl := c.ScopeTTL.Duration(capgate.DefaultScopeTTL)
	ctx, cancel := a.Context(cmd)
	defer cancel()
	for _, m := range markers {
		s := statusSession{Session: m.Session, Run: m.Run, Expired: m.Expired(a.Now(), ttl)}
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
		s.Used, s.Limit, s.Hook = u.Used, u.Limit, hookHeard
		if m.Silent(state) {
			s.Hook = silence(m.Marker, u)
		}
		report.Sessions = append(report.Sessions, s)
	}
	if a.AsJSON {
		return a.JSON(report)
	}
	printStatus(a, report)
	return nil
}

func printStatus(a *cli.App, r statusReport) {
	onOff := map[bool]string{true: "on", false: "off"}
	a.Printf("state   %s\nledger  %s\ncap     %s in this environment\ngates   %s in this environment\n",
		r.State, r.Ledger, onOff[r.Cap], onOff[r.Gates])
	if len(r.Sessions) == 0 {
		a.Printf("\nno session is armed\n")
		return
	}
	a.Printf("\n")
	rows := [][]string{{"SESSION", "RUN", "USED", "HOOK", "NOTE"}}
	for _, s := range r.Sessions {
		hook := "hook: " + s.Hook
		if s.Heard != nil && s.Hook == hookHeard {
			hook += " " + cli.Stamp(*s.Heard)
		}
		note := s.Problem
		switch {
		case note != "":
		case s.Expired:
			note = "expired"
		case s.Hook == hookSilent:
			note = "turns are recorded, but the hook judges nothing: run capgate doctor"
		}
		rows = append(rows, []string{s.Session, s.Run, fmt.Sprintf("%d of %d", s.Used, s.Limit), hook, note})
	}
	a.Table(rows...)
}
