package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/capgate/capgate/cmd/capgate/internal/cli"
	"github.com/capgate/capgate/ledger"
	"github.com/capgate/capgate/scope"
)

func newLedgerCmd(a *cli.App) *cobra.Command {
	return cli.Parent(&cobra.Command{
		Use:     "ledger",
		GroupID: cli.GroupOperator,
		Short:   "Verify, export and read the ledger",
		Long: `The ledger is an append-only file of everything that was counted: runs opened, turns, grants, runs closed. Each entry
carries the SHA-256 of the entry before it and of itself, so an edit, a removal or a reordering shows. These commands
only read.`,
		Example: `  capgate ledger verify
  capgate ledger tail -n 20
  capgate ledger export > ledger.jsonl`,
	}, newLedgerVerifyCmd(a), newLedgerExportCmd(a), newLedgerTailCmd(a), newLedgerHeadCmd(a))
}

func newLedgerVerifyCmd(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "verify",
		Short: "Check the whole ledger, and every marker against it",
		Long: `Walks the whole ledger: sequence, hashes, every counter recomputed, the file's own structure. Then checks of every
marker in the state directory that the ledger still holds the entry that the marker remembers, and the marker's run, as
the hook does. Problems are listed one a line, and the exit status is 1.

A chain of hashes cannot show that the newest entries were cut off, or the whole file replaced: markers can, and so can
a head that was kept elsewhere (ledger head).

--timeout bounds the wait for the ledger, not the walk.`,
		Example: `  capgate ledger verify
  capgate ledger verify --json`,
		Args: cli.NoArgs,
		RunE: a.Do(func(cmd *cobra.Command, _ []string) error {
			return ledgerVerify(a, cmd)
		}),
	}
}

// verified is what `ledger verify --json` prints.
type verified struct {
	OK       bool          `json:"ok"`
	File     string        `json:"file"`
	Head     ledger.Anchor `json:"head"`
	Entries  uint64        `json:"entries"`
	Runs     int           `json:"runs"`
	Markers  int           `json:"markers"` // checked against the ledger
	Problems []string      `json:"problems"`
}

func ledgerVerify(a *cli.App, cmd *cobra.Command) error {
	file, err := a.LedgerPath()
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
	// Markers first: the ledger only grows, so it still holds later what it held when they were read.
	markers, err := scope.List(state)
	if err != nil {
		return err
	}
	if err := await(a, cmd, l); err != nil {
		return err
	}
	walk, stop := cli.Unbounded(cmd)
	defer stop()
	report, err := l.Verify(walk)
	if err != nil {
		return err
	}
	v := verified{
		File: file, Head: report.Head, Entries: report.Entries, Runs: report.Runs, Markers: len(markers),
		Problems: append([]string{}, report.Problems...),
	}
	now := a.Now()
	for _, m := range markers {
		if err := checkMarker(a, cmd, l, m); err != nil {
			problem := fmt.Sprintf("marker of session %s: %v", m.Session, err)
			if m.Expired(now, ttl) {
				problem += "; it has expired, so `capgate scope sweep` removes it"
			}
			v.Problems = append(v.Problems, problem)
		}
	}
	v.OK = len(v.Problems) == 0

	if a.AsJSON {
		if err := a.JSON(v); err != nil {
			return err
		}
	} else if v.OK {
		a.Printf("%s is sound: %s, %s, %s checked\n", file,
			cli.Plural(v.Entries, "entry"), cli.Plural(v.Runs, "run"), cli.Plural(v.Markers, "marker"))
	}
	if v.OK {
		return nil
	}
	if !a.AsJSON {
		for _, problem := range v.Problems {
			a.Printf("%s\n", problem)
		}
	}
	return fmt.Errorf("%s: %s found: keep a copy of the file before you do anything about it", file, cli.Plural(len(v.Problems), "problem"))
}

// await waits for the ledger for as long as --timeout allows. What else is wrong with it is for the walk to say.
func await(a *cli.App, cmd *cobra.Command, l ledger.Ledger) error {
	ctx, cancel := a.Context(cmd)
	defer cancel()
	_, err := l.Head(ctx)
	if errors.Is(err, ledger.ErrBusy) {
		return err
	}
	return nil
}

// checkMarker holds a marker against the ledger, as the hook does.
func checkMarker(a *cli.App, cmd *cobra.Command, l ledger.Ledger, m scope.Listed) error {
	if m.Err != nil {
		return m.Err
	}
	ctx, cancel := a.Context(cmd)
	defer cancel()
	var anchor *ledger.Anchor
	if m.Anchor != nil {
		held := ledger.Anchor(*m.Anchor)
		anchor = &held
	}
	_, err := l.Budget(ctx, m.Run, anchor)
	return err
}

func newLedgerExportCmd(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "export",
		Short: "Print every entry as JSON lines that anybody can check",
		Long: `Prints one JSON object a line for each entry, oldest first:

  {"seq":1,"prev":"…","hash":"…","stored":"{\"seq\":1,…}"}

seq     the entry's number; dense, from 1
prev    the hash of the entry before; of the first one, the ledger's id (capgate ledger head)
hash    SHA-256 of prev, as 32 bytes, followed by the bytes of stored, in UTF-8
stored  the entry itself, itself JSON, exactly as it is in the ledger

So the chain is recomputed with nothing but SHA-256, for example by:

  import hashlib, json, sys
  prev = None
  for line in sys.stdin:
      e = json.loads(line)
      assert prev in (None, e["prev"]), e["seq"]
      prev = hashlib.sha256(bytes.fromhex(e["prev"]) + e["stored"].encode()).hexdigest()
      assert prev == e["hash"], e["seq"]

The output is JSON lines with and without --json. --timeout bounds the wait for the ledger, not the walk.`,
		Example: `  capgate ledger export > ledger.jsonl
  capgate ledger export | jq -r .stored`,
		Args: cli.NoArgs,
		RunE: a.Do(func(cmd *cobra.Command, _ []string) error {
			return ledgerExport(a, cmd)
		}),
	}
}

// exportedEntry is one line of `ledger export`.
type exportedEntry struct {
	Seq    uint64 `json:"seq"`
	Prev   string `json:"prev"`
	Hash   string `json:"hash"`
	Stored string `json:"stored"`
}

func ledgerExport(a *cli.App, cmd *cobra.Command) error {
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
	walk, stop := cli.Unbounded(cmd)
	defer stop()
	prev := head.Ledger
	return l.Entries(walk, 1, func(r ledger.Receipt, stored []byte) error {
		if !utf8.Valid(stored) {
			return fmt.Errorf("entry %d is not text and cannot be exported: run `capgate ledger verify`", r.Seq)
		}
		line := exportedEntry{Seq: r.Seq, Prev: prev, Hash: r.Hash, Stored: string(stored)}
		prev = r.Hash
		return a.JSON(line)
	})
}

func newLedgerTailCmd(a *cli.App) *cobra.Command {
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
			return ledgerTail(a, cmd, n)
		}),
	}
	cli.LinesFlag(cmd, &n, "entries to print")
	return cmd
}

func ledgerTail(a *cli.App, cmd *cobra.Command, n int) error {
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

func newLedgerHeadCmd(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "head",
		Short: "Print the newest entry's number and hash, to be kept elsewhere",
		Long: `Prints the ledger's id, and the number and hash of its newest entry. Kept outside this machine, they prove later that
the ledger still holds what it held: find the entry in ledger export and compare its hash.`,
		Example: `  capgate ledger head --json`,
		Args:    cli.NoArgs,
		RunE: a.Do(func(cmd *cobra.Command, _ []string) error {
			return ledgerHead(a, cmd)
		}),
	}
}

func ledgerHead(a *cli.App, cmd *cobra.Command) error {
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
	if a.AsJSON {
		return a.JSON(head)
	}
	a.Table([]string{"ledger", head.Ledger}, []string{"seq", strconv.FormatUint(head.Seq, 10)}, []string{"hash", head.Hash})
	return nil
}
