package ledger

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/capgate/capgate/ledger/internal/page"
)

func TestWhatIsFoundOnPagesGetsASentinelAndAWayOut(t *testing.T) {
	t.Parallel()
	ours := errors.New("an error of the rules")
	for _, c := range []struct {
		err  error
		want error
		says string
	}{
		{nil, nil, ""},
		{&page.DamageError{Found: "page 7 is not packed"}, ErrCorrupt,
			"ledger damaged: page 7 is not packed; run `capgate ledger verify`; restore it from a copy, or close the scope and start a new ledger"},
		{&page.DamageError{Found: "meta page 1 is damaged", Torn: true}, ErrCorrupt,
			"ledger damaged: meta page 1 is damaged, so the newest entry may be missing; restore the file from a copy, or close the scope and start a new ledger"},
		{&page.NewerError{Version: 3}, ErrNewerFormat,
			"ledger format is newer than this program: it has format 3, this program knows 1; update capgate"},
		{&page.ReadError{Err: &os.PathError{Op: "read", Path: "x", Err: syscall.EIO}}, ErrUnreadable,
			"ledger cannot be read: " + syscall.EIO.Error() + "; check its permissions and the disk"},
		{fmt.Errorf("more: %w", ours), ours, "more: an error of the rules"},
	} {
		err := ofPages(c.err)
		if c.want == nil {
			require.NoError(t, err)
			continue
		}
		require.ErrorIs(t, err, c.want)
		require.EqualError(t, err, c.says)
	}
}

func TestANewerBboltIsANewerFormat(t *testing.T) {
	t.Parallel()
	l := NewFile(filepath.Join(t.TempDir(), "ledger.db"), Options{})
	mustOpen(t, l, "r", 4, 1)
	content, err := os.ReadFile(l.path)
	require.NoError(t, err)
	meta := content[int(openBytes(t, content).Meta().TxID%2)*page.Size+page.HeaderSize:]
	binary.NativeEndian.PutUint32(meta[4:], 3)
	h := fnv.New64a()
	_, _ = h.Write(meta[:56])
	binary.NativeEndian.PutUint64(meta[56:], h.Sum64())
	require.NoError(t, os.WriteFile(l.path, content, 0o600))
	for method, err := range everyMethod(l) {
		require.ErrorIs(t, err, ErrNewerFormat, method)
	}
}
