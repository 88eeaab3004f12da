package loop

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/capgate/capgate/cmd/capgate/internal/cli"
	"github.com/capgate/capgate/cmd/capgate/internal/hearing"
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
	Hook      hearing.Word  `json:"hook,omitempty"`

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

func newListCmd(a *cli.App) *cobra.Command {
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
			return list(a, cmd)
		}),
	}
}

func list(a *cli.App, cmd *cobra.Command) error {
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
		rows = append(rows, []string{m.Session, m.status(), string(m.Hook), m.Run, started, m.age()})
	}
	a.Table(rows...)
	return nil
}

// hookWord says whether the hook of a session was heard.
func hookWord(a *cli.App, cmd *cobra.Command, state string, m scope.Listed) hearing.Word {
	if m.Err != nil {
		return hearing.NotYet
	}
	f := hearing.Facts{Heard: !m.Silent(state), ArmedAt: m.ModTime}
	if !f.Heard { // then the ledger is needed; one that cannot be read says nothing
		l, err := a.OpenLedger()
		if err != nil {
			return hearing.NotYet
		}
		ctx, cancel := a.Context(cmd)
		defer cancel()
		u, err := l.Usage(ctx, m.Run)
		if err != nil {
			return hearing.NotYet
		}
		f.Used, f.NewestAt = u.Used, u.LastAt
	}
	return hearing.Silence(hearing.Status, f)
}
