// Package run has the commands about runs, for the operator: open, show, list, close and grant.
package run

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/capgate/capgate/cmd/capgate/internal/cli"
	"github.com/capgate/capgate/ledger"
)

// New returns the command run, with further commands that other packages bring.
func New(a *cli.App, more ...*cobra.Command) *cobra.Command {
	return cli.Parent(&cobra.Command{
		Use:     "run",
		GroupID: cli.GroupOperator,
		Short:   "Open, show, extend and close runs",
		Long: `A run is one execution of a research loop. Its limit is max-conv-turns x max-dimensions turns, plus what was granted
later. All of it is in the ledger, which only ever grows.`,
		Example: `  capgate run list
  capgate run show storm-42
  capgate run grant storm-42 --turns 4 --reason "one more dimension, agreed in review"`,
	}, append(more, newOpenCmd(a), newShowCmd(a), newListCmd(a), newCloseCmd(a), newGrantCmd(a))...)
}

// shown is what `run show --json` prints, and one element of `run list --json`. The first seven fields are
// documented and stay.
type shown struct {
	Run           string           `json:"run"`
	Used          int64            `json:"used"`
	Limit         int64            `json:"limit"`
	Remaining     int64            `json:"remaining"`
	Dimensions    map[string]int64 `json:"dimensions"` // turns of each; turns without a dimension are in none
	OpenedAt      time.Time        `json:"opened_at"`
	Closed        bool             `json:"closed"`
	MaxConvTurns  int64            `json:"max_conv_turns"`
	MaxDimensions int64            `json:"max_dimensions"`
	Granted       int64            `json:"granted"`
	LastAt        time.Time        `json:"last_at"`
	LastSeq       uint64           `json:"last_seq"`
	Open          int64            `json:"open"` // turns that are begun and not ended
	// DimensionGrants are turns granted to single dimensions, beside max_conv_turns of each.
	DimensionGrants map[string]int64 `json:"dimension_grants,omitempty"`
}

// status says in one word whether the run takes turns.
func (s shown) status() string {
	switch {
	case s.Closed:
		return "closed"
	case s.Remaining <= 0 && s.Open > 0:
		return "last turn"
	case s.Remaining <= 0:
		return "spent"
	}
	return "open"
}

func show(u ledger.Usage) shown {
	s := shown{
		Run: u.Run, Used: u.Used, Limit: u.Limit, Remaining: u.Remaining, Dimensions: u.Dimensions, OpenedAt: u.OpenedAt,
		Closed: u.Closed, MaxConvTurns: u.MaxConvTurns, MaxDimensions: u.MaxDimensions, Granted: u.Granted,
		LastAt: u.LastAt, LastSeq: u.LastSeq, Open: u.Turns.Open, DimensionGrants: u.DimensionGrants,
	}
	if s.Dimensions == nil {
		s.Dimensions = map[string]int64{} // "{}", never "null"
	}
	return s
}

// changed is what `run close --json` and `run grant --json` print.
type changed struct {
	Run        string    `json:"run"`
	Used       int64     `json:"used"`
	Limit      int64     `json:"limit"`
	Remaining  int64     `json:"remaining"`
	Closed     bool      `json:"closed"`
	Granted    int64     `json:"granted,omitempty"`    // turns, by this command
	Dimension  string    `json:"dimension,omitempty"`  // that they are for
	Dimensions int64     `json:"dimensions,omitempty"` // granted by this command
	Reason     string    `json:"reason,omitempty"`
	At         time.Time `json:"at"`
	Replayed   bool      `json:"replayed"` // it was closed before
	Seq        uint64    `json:"seq"`
	Hash       string    `json:"hash"`
}

func change(r ledger.Receipt) changed {
	return changed{
		Run: r.Run, Used: r.Used, Limit: r.Limit, Remaining: r.Limit - r.Used, Closed: r.Kind == ledger.KindRunClosed,
		Granted: r.Entry.Turns, Dimension: r.Dimension, Dimensions: r.Entry.Dimensions, Reason: r.Reason, At: r.At, Replayed: r.Replayed, Seq: r.Seq, Hash: r.Hash,
	}
}
