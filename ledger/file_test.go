package ledger_test

import (
	"path/filepath"
	"testing"

	"github.com/capgate/capgate/ledger"
	"github.com/capgate/capgate/ledger/ledgertest"
)

func TestFileIsALedger(t *testing.T) {
	ledgertest.Run(t, func(t *testing.T) ledger.Ledger {
		return ledger.NewFile(filepath.Join(t.TempDir(), "state", "ledger.db"), ledger.Options{})
	})
}
