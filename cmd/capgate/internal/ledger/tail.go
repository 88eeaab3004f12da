package ledger

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/capgate/capgate/cmd/capgate/internal/cli"
	"github.com/capgate/capgate/ledger"
)

func newTailCmd(a *cli.App) *cobra.Command {
	var n int
	cmd := &cobra.Command{
		Use:   "tail",
		Short: "Print the newest entries",
		Long: `Prints the newest entries, oldest first, with their hashes checked on the way. With --json each is one JSON object a
line.`,
		Example: `  capgate ledger tail
  capgate ledger tail -n 100 --json`,
		Args: cli.NoArgs,
		RunE: a.Do(func(cmd *cobra.Command, _ []string) error {
			return tail(a, cmd, n)
		}),
	}
	cli.LinesFlag(cmd, &n, "entries to print")
	return cmd
}

func tail(a *cli.App, cmd *cobra.Command, n int) error {
	if err := cli.AtLeastOne("-n", n); err != nil {
		return err
	}
	l, err := a.OpenLedger()
	if err != nil {
		return err
	}
	ctx, cancel := a.Context(cmd)
	defer cancel()
	head, err := l.Head(ctx)
	if err != nil {
		return err
	}
	from := uint64(1)
	if head.Seq > uint64(n) {
		from = head.Seq - uint64(n) + 1
	}
	walk, stop := cli.Unbounded(cmd)
	defer stop()
	rows := [][]string{{"SEQ", "AT", "KIND", "RUN", "WHAT"}}
	err = l.Entries(walk, from, func(r ledger.Receipt, _ []byte) error {
		switch {
		case r.Seq > head.Seq: // appended since
			return errEnough
		case a.AsJSON:
			return a.JSON(struct {
				ledger.Entry
				Hash string `json:"hash"`
			}{r.Entry, r.Hash})
		}
		rows = append(rows, []string{strconv.FormatUint(r.Seq, 10), cli.Stamp(r.At), string(r.Kind), r.Run, what(r.Entry)})
		return nil
	})
	if err != nil && !errors.Is(err, errEnough) {
		return err
	}
	if !a.AsJSON {
		a.Table(rows...)
	}
	return nil
}

// errEnough ends a walk early.
var errEnough = errors.New("enough")

// what tells an entry's content in a few words.
func what(e ledger.Entry) string {
	switch e.Kind {
	case ledger.KindRunOpened:
		return fmt.Sprintf("limit %d (%d x %s)", e.Limit, e.MaxConvTurns, cli.Plural(e.MaxDimensions, "dimension"))
	case ledger.KindTurn:
		words := []string{fmt.Sprintf("%d of %d", e.Used, e.Limit)}
		if e.Dimension != "" {
			words = append(words, "dimension "+e.Dimension)
		}
		if e.Key != "" {
			words = append(words, "key "+e.Key)
		}
		return strings.Join(words, ", ")
	case ledger.KindGrant:
		return fmt.Sprintf("%s granted, limit %d: %s", cli.Plural(e.Turns, "turn"), e.Limit, e.Reason)
	}
	return fmt.Sprintf("%d of %d", e.Used, e.Limit)
}
