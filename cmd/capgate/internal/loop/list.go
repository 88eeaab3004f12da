package loop

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/capgate/capgate/cmd/capgate/internal/cli"
	"github.com/capgate/capgate/cmd/capgate/internal/sessions"
	"github.com/capgate/capgate/scope"
)

// listedMarker is one element of what `scope list --json` and `scope sweep --json` print.
type listedMarker struct {
	Session   string        `json:"session"`
	Run       string        `json:"run,omitempty"`
	StartedAt *time.Time    `json:"started_at,omitempty"` // absent where the marker does not say
	Age       float64       `json:"age_seconds"`          // negative for a time in the future
	Expired   bool          `json:"expired"`
	Anchor    *scope.Anchor `json:"anchor,omitempty"`
	Error     string        `json:"error,omitempty"` // why the marker cannot be read
	Hook      scope.Hearing `json:"hook,omitempty"`

	lived time.Duration // Age
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

func listMarker(l scope.Listed, now time.Time, expired bool) listedMarker {
	m := listedMarker{
		Session: l.Session, Run: l.Run, Anchor: l.Anchor,
		Age: l.Age(now).Seconds(), Expired: expired, lived: l.Age(now),
	}
	if !l.StartedAt.IsZero() {
		m.StartedAt = &l.StartedAt
	}
	if l.Err != nil {
		m.Error = l.Err.Error()
	}
	return m
}

func newListCmd(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List the sessions that have a marker",
		Long: `Lists every session with a marker in the state directory. "armed" sessions are held to their run's cap; "expired" ones
are not, and their marker goes at the next scope sweep; of an "unreadable" one the hook denies every capped call until
it is armed again, disarmed or expired. HOOK says whether the two halves of the bound work: "heard"; "not heard yet";
"silent" where turns are over and the hook was heard in none of them; "uncounted" where searches pass and no turn was
counted since the session was armed. An age that is "ahead" is of a marker from the future; one from further ahead
than markers hold has expired, too.`,
		Example: `  capgate scope list
  capgate scope list --json`,
		Args: cli.NoArgs,
		RunE: a.Do(func(cmd *cobra.Command, _ []string) error {
			return list(a, cmd)
		}),
	}
}

func list(a *cli.App, cmd *cobra.Command) error {
	state, ttl, err := a.Markers()
	if err != nil {
		return err
	}
	l, err := a.OpenLedger()
	if err != nil {
		return err
	}
	ctx, cancel := a.Context(cmd)
	defer cancel()
	now := a.Now()
	listed, err := sessions.List(ctx, state, ttl, now, l)
	if err != nil {
		return err
	}
	markers := []listedMarker{}
	for _, s := range listed {
		m := listMarker(s.Listed, now, s.Expired)
		m.Hook = s.Hearing
		markers = append(markers, m)
	}
	if a.AsJSON {
		return a.JSON(markers)
	}
	a.ShowPower()
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
		rows = append(rows, []string{m.Session, m.status(), string(m.Hook), m.Run, started, m.age()})
	}
	a.Table(rows...)
	return nil
}
