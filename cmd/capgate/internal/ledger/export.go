package ledger

import (
	"fmt"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/capgate/capgate/cmd/capgate/internal/cli"
	"github.com/capgate/capgate/ledger"
)

func newExportCmd(a *cli.App) *cobra.Command {
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
			return export(a, cmd)
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

func export(a *cli.App, cmd *cobra.Command) error {
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
