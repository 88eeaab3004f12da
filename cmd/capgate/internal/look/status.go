// Package look has the commands by which a person sees what capgate does: status, log and explain. They only read.
package look

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/capgate/capgate/capgate"
	"github.com/capgate/capgate/capgate/client"
	"github.com/capgate/capgate/capgate/control"
	"github.com/capgate/capgate/cmd/capgate/internal/cli"
	"github.com/capgate/capgate/cmd/capgate/internal/sessions"
	"github.com/capgate/capgate/scope"
)

// NewStatus returns the command status.
func NewStatus(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:     "status",
		GroupID: cli.GroupOperator,
		Short:   "Show at a glance whether the cap works, and for whom",
		Long: `Shows the state directory, whether the cap and the gates are on in this shell's environment, and each armed session:
its run, what is spent, and when its hook was last heard. A session is "silent" where turns of its run are over and
its hook was heard in none of them: then only the loop's own check holds (capgate turn), and capgate doctor says why.
It is "uncounted" where its searches pass and no turn was counted since it was armed: then nothing comes nearer to the
cap.`,
		Example: `  capgate status
  capgate status --json`,
		Args: cli.NoArgs,
		RunE: a.Do(func(cmd *cobra.Command, _ []string) error { return status(a, cmd) }),
	}
}

// Report is what `status --json` prints.
type Report struct {
	State     string        `json:"state"`
	Ledger    string        `json:"ledger"`
	Installed []Entry       `json:"installed"` // the installations that keep their state there
	Cap       bool          `json:"cap"`       // on for them, or in this environment where there is none
	Gates     bool          `json:"gates"`     // the same
	Problem   string        `json:"problem,omitempty"`
	Off       *control.Word `json:"off,omitempty"`  // in force
	Halt      *control.Word `json:"halt,omitempty"` // in force
	Sessions  []Session     `json:"sessions"`
	Others    []Report      `json:"others,omitempty"` // of the other installed state directories
}

// Entry is one installation.
type Entry struct {
	Client  string `json:"client"`
	Place   string `json:"place"` // user, project, local, managed or plugin
	File    string `json:"file"`
	Plugin  string `json:"plugin,omitempty"`
	EnvFile string `json:"env_file,omitempty"`
}

// Session is one armed session.
type Session struct {
	Session string        `json:"session"`
	Run     string        `json:"run,omitempty"`
	Used    int64         `json:"used"`
	Limit   int64         `json:"limit"`
	Open    int64         `json:"open"` // turns that are begun and not ended
	Expired bool          `json:"expired"`
	Heard   *time.Time    `json:"heard,omitempty"` // when the hook was last heard in scope
	Passed  int64         `json:"passed"`          // capped calls that it let through since the session was armed
	Hook    scope.Hearing `json:"hook"`
	Problem string        `json:"problem,omitempty"`

	turnAt time.Time // when the newest turn was begun
}

func status(a *cli.App, cmd *cobra.Command) error {
	states, err := a.StateDirs()
	if err != nil {
		return err
	}
	var reports []Report
	for _, state := range states {
		a.StateFlag = cli.Text(state) // what follows means this one
		r, err := report(a, cmd, state)
		if err != nil {
			return err
		}
		reports = append(reports, r)
	}
	if a.AsJSON {
		reports[0].Others = reports[1:]
		return a.JSON(reports[0])
	}
	for i, r := range reports {
		if i > 0 {
			a.Printf("\n")
		}
		printStatus(a.Printer, r)
	}
	return nil
}

// report looks at one state directory.
func report(a *cli.App, cmd *cobra.Command, state string) (report Report, err error) {
	c, err := a.Config()
	if err != nil {
		return report, err
	}
	path, err := a.LedgerPath()
	if err != nil {
		return report, err
	}
	l, err := a.OpenLedger()
	if err != nil {
		return report, err
	}
	said := a.Power()
	under := c.Under(said.Off)
	report = Report{
		State: state, Ledger: path, Installed: []Entry{}, Cap: under.CapOn(), Gates: under.GatesActive(),
		Off: said.Off, Halt: said.Halt, Sessions: []Session{},
	}
	for _, e := range a.Installed() {
		if e.Config.Problem != nil && report.Problem == "" {
			report.Problem = e.Config.Problem.Error()
		}
		if e.State() == state || e.Config.Problem != nil {
			report.Installed = append(report.Installed, Entry{Client: e.Client, Place: e.Place, File: e.File, Plugin: e.Plugin, EnvFile: e.Config.EnvFile})
		}
	}
	ctx, cancel := a.Context(cmd)
	defer cancel()
	listed, err := sessions.List(ctx, state, c.ScopeTTL.Duration(capgate.DefaultScopeTTL), a.Now(), l)
	if err != nil && !errors.Is(err, scope.ErrNone) {
		return report, err
	}
	for _, m := range listed {
		s := Session{
			Session: m.Session, Run: m.Run, Used: m.Usage.Used, Limit: m.Usage.Limit, Open: m.Usage.Open, Expired: m.Expired,
			Passed: m.Beat.Passed, Hook: m.Hearing, turnAt: m.Usage.Turns.Newest,
		}
		if !m.Beat.At.IsZero() {
			s.Heard = &m.Beat.At
		}
		if m.UsageErr != nil {
			s.Problem = m.UsageErr.Error()
		}
		report.Sessions = append(report.Sessions, s)
	}
	return report, nil
}

func printStatus(out *cli.Printer, r Report) {
	onOff := map[bool]string{true: "on", false: "off"}
	here := ""
	if len(r.Installed) == 0 {
		here = " in this environment"
	}
	if r.Halt != nil {
		out.Printf("HALTED  %s\n", r.Halt.HaltText())
	}
	if r.Off != nil {
		out.Printf("OFF     %s\n", r.Off.OffText())
	}
	if r.Problem != "" {
		out.Printf("BROKEN  %s: run capgate doctor\n", r.Problem)
	}
	out.Printf("state   %s\nledger  %s\ncap     %s%s\ngates   %s%s\n", r.State, r.Ledger, onOff[r.Cap], here, onOff[r.Gates], here)
	for _, e := range r.Installed {
		out.Printf("hook    %s, %s: %s\n", client.Title(e.Client), e.what(), e.File)
	}
	if len(r.Sessions) == 0 {
		out.Printf("\nno session is armed\n")
		return
	}
	out.Printf("\n")
	rows := [][]string{{"SESSION", "RUN", "USED", "HOOK", "NOTE"}}
	for _, s := range r.Sessions {
		hook := "hook: " + string(s.Hook)
		if s.Heard != nil && s.Hook == scope.Hears {
			hook += " " + cli.Stamp(*s.Heard)
		}
		used := fmt.Sprintf("%d of %d", s.Used, s.Limit)
		if s.Open > 0 {
			used += fmt.Sprintf(", %d open", s.Open)
		}
		rows = append(rows, []string{s.Session, s.Run, used, hook, s.note()})
	}
	out.Table(rows...)
}

// what says where the installation is.
func (e Entry) what() string {
	if e.Plugin != "" {
		return "plugin " + e.Plugin
	}
	return e.Place
}

// note says what is wrong with a session, or else what its newest turn does.
func (s Session) note() string {
	switch {
	case s.Problem != "":
		return s.Problem
	case s.Expired:
		return "expired"
	case s.Hook == scope.Silent:
		return "turns are counted, but the hook judges nothing: run capgate doctor"
	case s.Hook == scope.Uncounted:
		return cli.Plural(s.Passed, "search") + " passed and no turn was counted: capgate turn begin before each turn, or capgate loop"
	case s.Open > 0:
		return fmt.Sprintf("turn %d of %d open since %s", s.Used, s.Limit, cli.Stamp(s.turnAt))
	}
	return ""
}
