package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/capgate/capgate/cmd/capgate/internal/cli"
	"github.com/capgate/capgate/ledger"
	"github.com/capgate/capgate/scope"
)

func newScopeCmd(a *cli.App) *cobra.Command {
	return cli.Parent(&cobra.Command{
		Use:     "scope",
		GroupID: cli.GroupLoop,
		Short:   "Arm and disarm sessions: while one is armed, the hook holds it to its run's cap",
		Long: `A session is in scope of a run while it has a fresh marker, a small file in the state directory. The hook judges only
sessions in scope; everything else passes. A marker that is older than CAPGATE_SCOPE_TTL_MS (6 hours by default) counts
no more, so that a crashed loop does not hold its session for ever.`,
		Example: `  capgate scope open --run storm-42 --max-conv-turns 4 --max-dimensions 2
  capgate scope list
  capgate scope close`,
	}, newScopeOpenCmd(a), newScopeCloseCmd(a), newScopeListCmd(a), newScopeSweepCmd(a))
}

// sessionFlag adds --session to a command.
func sessionFlag(a *cli.App, cmd *cobra.Command, session *cli.Text) {
	cmd.Flags().Var(session, "session", "session id; default "+strings.Join(cli.SessionVariables, " or "))
	cli.Must(cmd.RegisterFlagCompletionFunc("session", a.Sessions))
}

// session returns the session that a command is about.
func session(a *cli.App, flag cli.Text) (string, error) {
	id := string(flag)
	for _, name := range cli.SessionVariables {
		if id == "" {
			id, _ = a.Lookup(name)
		}
	}
	if id == "" {
		return "", cli.Usagef("no session: give --session, or run inside a client that sets %s", strings.Join(cli.SessionVariables, " or "))
	}
	if !scope.ValidSession(id) {
		return "", cli.Usagef("session id %.140q cannot be armed: ids are 1 to 128 of A-Z a-z 0-9 . _ - and start with no dot", id)
	}
	return id, nil
}

type scopeOpenOptions struct {
	session cli.Text
	runOpenOptions
}

func newScopeOpenCmd(a *cli.App) *cobra.Command {
	var o scopeOpenOptions
	cmd := &cobra.Command{
		Use:   "open",
		Short: "Open a run and arm a session for it",
		Long: `Opens the run in the ledger, creating state directory and ledger where there are none, and arms the session for it.

Opening a run again with the same limits changes nothing in the ledger and arms the session afresh; other limits are an
error. A session that is armed for another run is armed for this one from now on. The marker remembers how far the
ledger had come, so that the hook and turn notice a ledger that was deleted, replaced or rolled back. So does this
command: it does not arm a session again over such a loss, nor with another ledger, until scope close gives the old
count up.

The hook finds both by CAPGATE_DATA_DIR and CAPGATE_LEDGER alone: with --state or --ledger, name the same places there.`,
		Example: `  capgate scope open --session S --run storm-42 --max-conv-turns 4 --max-dimensions 2`,
		Args:    cli.NoArgs,
		RunE: a.Do(func(cmd *cobra.Command, _ []string) error {
			return scopeOpen(a, cmd, o)
		}),
	}
	sessionFlag(a, cmd, &o.session)
	runFlag(a, cmd, &o.run)
	limitFlags(cmd, &o.runOpenOptions)
	return cmd
}

// scopeOpened is what `scope open --json` prints.
type scopeOpened struct {
	Session   string        `json:"session"`
	Run       string        `json:"run"`
	StartedAt time.Time     `json:"started_at"`
	Used      int64         `json:"used"`
	Limit     int64         `json:"limit"`
	Remaining int64         `json:"remaining"`
	Marker    string        `json:"marker"`
	Anchor    ledger.Anchor `json:"anchor"`
	// Replaced is the run that the session was armed for; "" when it was not, or its marker was unreadable.
	Replaced string `json:"replaced_run,omitempty"`
}

func scopeOpen(a *cli.App, cmd *cobra.Command, o scopeOpenOptions) error {
	session, err := session(a, o.session)
	if err != nil {
		return err
	}
	state, ttl, err := a.Markers()
	if err != nil {
		return err
	}
	l, err := a.OpenLedger()
	if err != nil {
		return err
	}
	// Before anything is created: a new ledger in place of a lost one would be a fresh budget.
	before, beforeErr := scope.Read(state, session)
	switch {
	case errors.Is(beforeErr, scope.ErrState):
		if err := cli.MakeStateDir(state); err != nil {
			return err
		}
		return beforeErr
	case beforeErr == nil && !before.Expired(a.Now(), ttl):
		if err := stillHeld(a, cmd, l, before); err != nil {
			return err
		}
	}
	usage, _, err := openRun(a, cmd, l, o.runOpenOptions)
	if err != nil {
		return err
	}
	ctx, cancel := a.Context(cmd)
	defer cancel()
	head, err := l.Head(ctx)
	if err != nil {
		return notArmed(usage.Run, err)
	}
	anchor := scope.Anchor(head)
	m := scope.Marker{Session: session, Run: usage.Run, StartedAt: a.Now().UTC(), Anchor: &anchor}
	if err := scope.Write(state, m); err != nil {
		return notArmed(usage.Run, err)
	}

	opened := scopeOpened{
		Session: session, Run: usage.Run, StartedAt: m.StartedAt,
		Used: usage.Used, Limit: usage.Limit, Remaining: usage.Remaining,
		Marker: scope.Path(state, session), Anchor: head,
	}
	again := ""
	switch {
	case errors.Is(beforeErr, scope.ErrUnreadable):
		again = ", in place of a marker that could not be read"
	case beforeErr != nil:
	case before.Run == usage.Run:
		opened.Replaced = before.Run
		again = ", as it was before"
	default:
		opened.Replaced = before.Run
		again = fmt.Sprintf(", and no longer for run %s", before.Run)
	}
	if a.AsJSON {
		return a.JSON(opened)
	}
	a.Printf("session %s is armed for run %s%s: %d of %d turns used\n", session, usage.Run, again, usage.Used, usage.Limit)
	return nil
}

// stillHeld checks that the ledger holds what it held when the session was armed. Whatever is wrong with the run itself
// is for others to say.
func stillHeld(a *cli.App, cmd *cobra.Command, l ledger.Ledger, m scope.Marker) error {
	if m.Anchor == nil {
		return nil
	}
	ctx, cancel := a.Context(cmd)
	defer cancel()
	anchor := ledger.Anchor(*m.Anchor)
	_, err := l.Budget(ctx, m.Run, &anchor)
	file, _ := a.LedgerPath()
	wayOut := fmt.Sprintf("restore it from a copy, or give the old count up with `capgate scope close --session %s`", m.Session)
	switch {
	case errors.Is(err, ledger.ErrRunUnknown):
		return nil
	case errors.Is(err, ledger.ErrMissing):
		return lostError{fmt.Sprintf("session %s is armed for run %s, but its ledger %s is gone: %s", m.Session, m.Run, file, wayOut)}
	case errors.Is(err, ledger.ErrAnchorLost), errors.Is(err, ledger.ErrInvalid):
		return lostError{fmt.Sprintf("session %s is armed for run %s, but ledger %s does not hold what it held then: "+
			"it was rolled back or replaced, or is another one; %s", m.Session, m.Run, file, wayOut)}
	}
	return err
}

// lostError is a ledger that does not hold what a marker remembers.
type lostError struct{ text string }

func (e lostError) Error() string { return e.text }
func (e lostError) Unwrap() error { return ledger.ErrAnchorLost }

func notArmed(run string, err error) error {
	return fmt.Errorf("run %s is open, but the session is not armed: %w", run, err)
}

func newScopeCloseCmd(a *cli.App) *cobra.Command {
	var session cli.Text
	cmd := &cobra.Command{
		Use:   "close",
		Short: "Disarm a session",
		Long: `Disarms the session: the hook lets its calls pass again. The run stays open and keeps its count. A session that is not
armed is no error, so a loop may close its scope in any clean-up.`,
		Example: `  capgate scope close --session S`,
		Args:    cli.NoArgs,
		RunE: a.Do(func(*cobra.Command, []string) error {
			return scopeClose(a, session)
		}),
	}
	sessionFlag(a, cmd, &session)
	return cmd
}

func scopeClose(a *cli.App, flag cli.Text) error {
	session, err := session(a, flag)
	if err != nil {
		return err
	}
	state, err := a.StateDir()
	if err != nil {
		return err
	}
	closed, err := scope.Close(state, session)
	if err != nil {
		return err
	}
	_ = scope.Forget(state, session)
	if closed {
		a.Changed()
	}
	if a.AsJSON {
		return a.JSON(struct {
			Session string `json:"session"`
			Closed  bool   `json:"closed"` // false: it was not armed
		}{session, closed})
	}
	if closed {
		a.Printf("session %s is disarmed\n", session)
	} else {
		a.Printf("session %s was not armed in %s\n", session, state)
	}
	return nil
}

// listedMarker is one element of what `scope list --json` and `scope sweep --json` print.
type listedMarker struct {
	Session   string        `json:"session"`
	Run       string        `json:"run,omitempty"`
	StartedAt *time.Time    `json:"started_at,omitempty"` // absent where the marker does not say
	Age       float64       `json:"age_seconds"`          // negative for a time in the future
	Expired   bool          `json:"expired"`
	Anchor    *scope.Anchor `json:"anchor,omitempty"`
	Error     string        `json:"error,omitempty"` // why the marker cannot be read
	Hook      string        `json:"hook,omitempty"`  // "heard", "silent" or "not heard yet"

	lived time.Duration // Age
}

func listMarker(l scope.Listed, now time.Time, ttl time.Duration) listedMarker {
	m := listedMarker{
		Session: l.Session, Run: l.Run, Anchor: l.Anchor,
		Age: l.Age(now).Seconds(), Expired: l.Expired(now, ttl), lived: l.Age(now),
	}
	if !l.StartedAt.IsZero() {
		m.StartedAt = &l.StartedAt
	}
	if l.Err != nil {
		m.Error = l.Err.Error()
	}
	return m
}

// status says in one word what the hook makes of the marker.
func (m listedMarker) status() string {
	switch {
	case m.Expired:
		return "expired"
	case m.Error != "":
		return "unreadable"
	}
	return "armed"
}

// age is for a column, dated for a sentence.
func (m listedMarker) age() string {
	if d := m.lived.Truncate(time.Second); d < 0 {
		return (-d).String() + " ahead"
	}
	return m.lived.Truncate(time.Second).String()
}

func (m listedMarker) dated() string {
	if d := m.lived.Truncate(time.Second); d < 0 {
		return (-d).String() + " in the future"
	}
	return m.age() + " old"
}

func newScopeListCmd(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List the sessions that have a marker",
		Long: `Lists every session with a marker in the state directory. "armed" sessions are held to their run's cap; "expired"
ones are not, and their marker goes at the next scope sweep; of an "unreadable" one the hook denies every capped call
until it is armed again, disarmed or expired. An age that is "ahead" is of a marker from the future; one from further
ahead than markers hold has expired, too.`,
		Example: `  capgate scope list
  capgate scope list --json`,
		Args: cli.NoArgs,
		RunE: a.Do(func(cmd *cobra.Command, _ []string) error {
			return scopeList(a, cmd)
		}),
	}
}

func scopeList(a *cli.App, cmd *cobra.Command) error {
	state, ttl, err := a.Markers()
	if err != nil {
		return err
	}
	listed, err := scope.List(state)
	if err != nil {
		return err
	}
	markers, now := []listedMarker{}, a.Now()
	for _, l := range listed {
		m := listMarker(l, now, ttl)
		m.Hook = hookWord(a, cmd, state, l)
		markers = append(markers, m)
	}
	if a.AsJSON {
		return a.JSON(markers)
	}
	if len(markers) == 0 {
		a.Printf("no session is armed in %s\n", state)
		return nil
	}
	rows := [][]string{{"SESSION", "STATUS", "HOOK", "RUN", "STARTED", "AGE"}}
	for _, m := range markers {
		started := ""
		if m.StartedAt != nil {
			started = cli.Stamp(*m.StartedAt)
		}
		rows = append(rows, []string{m.Session, m.status(), m.Hook, m.Run, started, m.age()})
	}
	a.Table(rows...)
	return nil
}

func newScopeSweepCmd(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "sweep",
		Short: "Remove expired markers",
		Long: `Removes the markers that are older than CAPGATE_SCOPE_TTL_MS (6 hours by default), readable or not, those from
further in the future than that, and temporary files that a crash left behind. A session that is armed again at the
same moment keeps its new marker.`,
		Example: `  capgate scope sweep`,
		Args:    cli.NoArgs,
		RunE: a.Do(func(*cobra.Command, []string) error {
			return scopeSweep(a)
		}),
	}
}

func scopeSweep(a *cli.App) error {
	state, ttl, err := a.Markers()
	if err != nil {
		return err
	}
	now := a.Now()
	removed, err := scope.Sweep(state, ttl, now)
	if len(removed) > 0 {
		a.Changed()
	}
	markers := []listedMarker{}
	for _, l := range removed {
		m := listMarker(l, now, ttl)
		markers = append(markers, m)
		if !a.AsJSON {
			run := "unreadable"
			if m.Error == "" {
				run = "run " + m.Run
			}
			a.Printf("removed the marker of session %s (%s, %s)\n", m.Session, run, m.dated())
		}
	}
	if err != nil {
		return err
	}
	if a.AsJSON {
		return a.JSON(markers)
	}
	if len(markers) == 0 {
		a.Printf("no expired marker in %s\n", filepath.Join(state, scope.DirName))
	}
	return nil
}
