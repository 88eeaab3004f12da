package ledger

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/capgate/capgate/ledger/disk"
	"github.com/capgate/capgate/ledger/internal/page"
)

// everyMethod calls each method once, for tests of what none of them may do.
func everyMethod(l *File) map[string]error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	errs := map[string]error{}
	_, errs["OpenRun"] = l.OpenRun(ctx, "new", 1, 1)
	_, errs["RecordTurn"] = l.RecordTurn(ctx, "r", "", "")
	_, errs["Grant"] = l.Grant(ctx, "r", Grant{Turns: 1}, "more")
	_, errs["CloseRun"] = l.CloseRun(ctx, "r")
	_, errs["Budget"] = l.Budget(ctx, "r", nil)
	_, errs["Usage"] = l.Usage(ctx, "r")
	_, errs["Runs"] = l.Runs(ctx)
	_, errs["Head"] = l.Head(ctx)
	errs["Entries"] = l.Entries(ctx, 1, func(Receipt, []byte) error { return nil })
	_, errs["Verify"] = l.Verify(ctx)
	return errs
}

// leftovers fails when there is something else in the ledger's directory than its two files.
func leftovers(t *testing.T, l *File) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Dir(l.path))
	require.NoError(t, err)
	for _, e := range entries {
		require.Contains(t, []string{"ledger.db", "ledger.lock"}, e.Name())
	}
}

func TestOnlyOpenRunCreates(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")
	l := NewFile(filepath.Join(dir, "ledger.db"), Options{})
	ctx := context.Background()
	for range 2 { // without the directory, then with it
		_, err := l.RecordTurn(ctx, "r", "", "")
		require.ErrorIs(t, err, ErrMissing)
		_, err = l.Grant(ctx, "r", Grant{Turns: 1}, "more")
		require.ErrorIs(t, err, ErrMissing)
		_, err = l.CloseRun(ctx, "r")
		require.ErrorIs(t, err, ErrMissing)
		_, err = l.Budget(ctx, "r", nil)
		require.ErrorIs(t, err, ErrMissing)
		_, err = l.Runs(ctx)
		require.ErrorIs(t, err, ErrMissing)
		_, err = l.Head(ctx)
		require.ErrorIs(t, err, ErrMissing)
		_, err = l.Verify(ctx)
		require.ErrorIs(t, err, ErrMissing)
		require.NoFileExists(t, l.path)
		require.NoFileExists(t, filepath.Join(dir, "ledger.lock"))
		require.NoError(t, os.MkdirAll(dir, 0o700))
	}
	mustOpen(t, l, "r", 1, 1)
	require.NoError(t, os.Remove(l.path))
	_, err := l.RecordTurn(ctx, "r", "", "")
	require.ErrorIs(t, err, ErrMissing, "a deleted ledger does not come back empty")
}

func TestCreationLeavesTwoPrivateFiles(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")
	l := NewFile(filepath.Join(dir, "ledger.db"), Options{})
	mustOpen(t, l, "r", 1, 1)
	leftovers(t, l)
	for path, mode := range map[string]os.FileMode{l.path: 0o600, dir: 0o700, filepath.Dir(dir): 0o700} {
		info, err := os.Stat(path)
		require.NoError(t, err)
		require.Equal(t, mode, info.Mode().Perm(), path)
	}
	requireSound(t, l)
}

func TestTemporaryFilesOfCrashedCreatorsAreSweptWhenOld(t *testing.T) {
	l := newLedger(t)
	dir := filepath.Dir(l.path)
	at := func(name string, age time.Duration) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, nil, 0o600))
		when := time.Now().Add(-age)
		require.NoError(t, os.Chtimes(path, when, when))
		return path
	}
	for _, run := range []string{"the first one creates", "a later one finds the ledger"} {
		old, ahead := at(".ledger.db.new-1.tmp", 2*disk.StaleAfter), at(".ledger.db.new-2.tmp", -2*disk.StaleAfter)
		young, other := at(".ledger.db.new-3.tmp", disk.StaleAfter/2), at("other.tmp", 2*disk.StaleAfter)
		mustOpen(t, l, run, 1, 1)
		require.NoFileExists(t, old, run)
		require.NoFileExists(t, ahead, run)
		require.FileExists(t, young, run)
		require.FileExists(t, other, run)
	}
}

func TestALedgerNamedLikeALockFileDoesNotWaitForItself(t *testing.T) {
	for _, name := range []string{"ledger.lock", "ledger.LOCK", ".lock", "a.lock.lock", "lock", "ledger"} {
		t.Run(name, func(t *testing.T) {
			l := NewFile(filepath.Join(t.TempDir(), name), Options{})
			require.False(t, strings.EqualFold(l.path, l.turnstileName()))
			ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
			defer cancel()
			_, err := l.OpenRun(ctx, "r", 2, 1)
			require.NoError(t, err)
			_, err = l.RecordTurn(ctx, "r", "", "")
			require.NoError(t, err)
			require.FileExists(t, l.turnstileName())
			requireSound(t, l)
		})
	}
	require.Equal(t, "/x/ledger.lock", NewFile("/x/ledger.db", Options{}).turnstileName())
}

func TestAnErrorSaysWhatToDoAboutItsCause(t *testing.T) {
	for _, c := range []struct {
		cause error
		write string
	}{
		{syscall.ENOSPC, "check free space and the disk, then try again"},
		{syscall.EIO, "check free space and the disk, then try again"},
		{errors.New("file size"), "check free space and the disk, then try again"},
		{syscall.EACCES, "check the permissions of the file and its directory, then try again"},
		{syscall.EPERM, "check the permissions of the file and its directory, then try again"},
		{syscall.EROFS, "choose a place that can be written, then try again"},
		{syscall.EMFILE, "close files or raise the limit of open ones (ulimit -n), then try again"},
		{syscall.ENFILE, "close files or raise the limit of open ones (ulimit -n), then try again"},
		{syscall.ENOTDIR, "check the path, then try again"},
		{syscall.ELOOP, "check the path, then try again"},
	} {
		err := notRecorded(&os.PathError{Op: "open", Path: "x", Err: c.cause})
		require.EqualError(t, err, "not recorded: "+c.cause.Error()+"; "+c.write)
		require.ErrorIs(t, err, c.cause)
	}
	require.EqualError(t, unreadable(syscall.EMFILE), "ledger cannot be read: "+syscall.EMFILE.Error()+"; close files or raise the limit of open ones (ulimit -n)")
	require.EqualError(t, unreadable(syscall.EIO), "ledger cannot be read: "+syscall.EIO.Error()+"; check its permissions and the disk")
}

func TestARefusedTurnLeavesTheFileAsItWas(t *testing.T) {
	l := newLedger(t)
	ctx := context.Background()
	mustOpen(t, l, "r", 1, 2)
	mustTurn(t, l, "r", "d", "k")
	mustOpen(t, l, "spent", 1, 1)
	mustTurn(t, l, "spent", "", "")
	mustOpen(t, l, "closed", 1, 1)
	_, err := l.CloseRun(ctx, "closed")
	require.NoError(t, err)
	long := time.Now().Add(-time.Hour).Truncate(time.Second)
	require.NoError(t, os.Chtimes(l.path, long, long))
	before, err := os.ReadFile(l.path)
	require.NoError(t, err)

	for name, turn := range map[string][2]string{
		"run limit": {"spent", ""}, "dimension": {"r", "d"}, "unknown": {"other", ""}, "closed": {"closed", ""},
	} {
		_, err := l.RecordTurn(ctx, turn[0], turn[1], "")
		require.Error(t, err, name)
	}
	require.True(t, mustTurn(t, l, "r", "d", "k").Replayed)
	mustBudget(t, l, "r")
	_, err = l.Runs(ctx)
	require.NoError(t, err)
	requireSound(t, l)

	after, err := os.ReadFile(l.path)
	require.NoError(t, err)
	require.True(t, bytes.Equal(before, after))
	info, err := os.Stat(l.path)
	require.NoError(t, err)
	require.True(t, info.ModTime().Equal(long))
}

func TestErrorsSayWhatAndWhereOnOneLine(t *testing.T) {
	l := NewFile(filepath.Join(t.TempDir(), "ledger.db"), Options{})
	require.NoError(t, os.WriteFile(l.path, []byte("not a ledger\n"), 0o600))
	for name, err := range everyMethod(l) {
		require.ErrorIs(t, err, ErrCorrupt, name)
		require.Contains(t, err.Error(), "in ledger "+l.path+": ", name)
		require.Contains(t, err.Error(), "capgate ledger verify", name)
		require.Equal(t, 1, strings.Count(err.Error(), l.path), name)
		require.NotContains(t, err.Error(), "\n", name)
	}
	content, err := os.ReadFile(l.path)
	require.NoError(t, err)
	require.Equal(t, "not a ledger\n", string(content))
}

func TestATurnIsStampedByTheClockGiven(t *testing.T) {
	now := time.Date(2026, 5, 4, 3, 2, 1, 987654321, time.FixedZone("elsewhere", 3600))
	l := NewFile(filepath.Join(t.TempDir(), "ledger.db"), Options{Now: func() time.Time { return now }})
	r := mustOpen(t, l, "r", 1, 1)
	require.Equal(t, now.UTC(), r.At)
	u, err := l.Usage(context.Background(), "r")
	require.NoError(t, err)
	require.Equal(t, now.UTC(), u.OpenedAt)
	now = time.Date(1969, 1, 1, 0, 0, 0, 0, time.UTC)
	_, err = l.RecordTurn(context.Background(), "r", "", "")
	require.ErrorIs(t, err, ErrInvalid)
	requireSound(t, l)
}

func TestAStuckTransactionEndsAtTheDeadlineAndCommitsNothing(t *testing.T) {
	for name, c := range map[string]struct {
		mode mode
		want error
	}{
		"a read is damage":          {reading, ErrCorrupt},
		"a walk needs more time":    {walking, ErrBusy},
		"a write commits no longer": {writing, ErrCorrupt},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLedger(t)
			mustOpen(t, l, "r", 4, 1)
			ctx, cancel := context.WithTimeout(context.Background(), stuckAfter+200*time.Millisecond)
			defer cancel()
			release, ended := make(chan struct{}), make(chan struct{})
			_, err := transact(ctx, l, c.mode, func(_ context.Context, tx *tx) (Receipt, error) {
				defer close(ended)
				<-release
				if c.mode != writing {
					return Receipt{}, nil
				}
				s, err := tx.existing("r")
				require.NoError(t, err)
				return tx.next(s, turn{KindTurn, "r", "", ""})
			})
			require.ErrorIs(t, err, c.want)
			close(release)
			<-ended
			require.Zero(t, mustBudget(t, l, "r").Used, "and the lock is free again")
		})
	}
}

func TestACancelledCallIsNotDamage(t *testing.T) {
	l := newLedger(t)
	mustOpen(t, l, "r", 4, 1)
	for _, m := range []mode{reading, walking, writing} {
		ctx, cancel := context.WithCancel(context.Background())
		ended := make(chan struct{})
		_, err := transact(ctx, l, m, func(context.Context, *tx) (int, error) {
			defer close(ended)
			cancel()
			time.Sleep(20 * time.Millisecond)
			return 0, nil
		})
		require.ErrorIs(t, err, ErrBusy)
		<-ended
	}
}

func TestAPanicIsDamageAndFreesTheLock(t *testing.T) {
	l := newLedger(t)
	mustOpen(t, l, "r", 4, 1)
	for _, m := range []mode{reading, writing} {
		_, err := transact(context.Background(), l, m, func(context.Context, *tx) (int, error) { panic("one\ntwo") })
		require.ErrorIs(t, err, ErrCorrupt)
		require.NotContains(t, err.Error(), "two")
		mustTurn(t, l, "r", "", "")
	}
}

func TestAFaultIsDamageAndFreesTheLock(t *testing.T) {
	l := newLedger(t)
	mustOpen(t, l, "r", 900, 1)
	for range 200 {
		mustTurn(t, l, "r", "", "")
	}
	whole, err := os.ReadFile(l.path)
	require.NoError(t, err)
	_, err = transact(context.Background(), l, walking, func(_ context.Context, tx *tx) (int, error) {
		require.NoError(t, os.Truncate(l.path, 2*page.Size))
		n := 0
		return n, tx.bolt.Bucket([]byte(bucketEntries)).ForEach(func(_, v []byte) error {
			n += int(v[0])
			return nil
		})
	})
	require.ErrorIs(t, err, ErrCorrupt)
	require.NoError(t, os.WriteFile(l.path, whole, 0o600))
	require.EqualValues(t, 200, mustBudget(t, l, "r").Used)
}

func TestEntriesSpanBatches(t *testing.T) {
	l := newLedger(t)
	n := scaled(2 * batchEntries)
	mustOpen(t, l, "r", MaxLimit, 1)
	fill(t, l, "r", n)
	var seen uint64
	require.NoError(t, l.Entries(context.Background(), 1, func(r Receipt, stored []byte) error {
		seen++
		require.Equal(t, seen, r.Seq)
		require.True(t, bytes.HasPrefix(stored, []byte(`{"seq":`)))
		return nil
	}))
	require.EqualValues(t, n+1, seen)
}

// fill records many turns in one transaction, which no method does, to get a large ledger soon.
func fill(t testing.TB, l *File, run string, n int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	_, err := transact(ctx, l, writing, func(_ context.Context, tx *tx) (int, error) {
		s, err := tx.existing(run)
		if err != nil {
			return 0, err
		}
		for range n {
			e := Entry{Seq: tx.head.seq + 1, At: time.Now().UTC().Round(0), Kind: KindTurn, Run: run}
			s = s.apply(e, false)
			e.Used, e.Open, e.Limit = s.used, s.open, s.limit
			stored, err := encodeEntry(e)
			if err != nil {
				return 0, err
			}
			tx.head = link{e.Seq, chain(tx.head.hash, stored)}
			if err := tx.put(bucketEntries, encodeUint(e.Seq), append(bytes.Clone(tx.head.hash[:]), stored...)); err != nil {
				return 0, err
			}
		}
		tx.dirty = true
		return n, errors.Join(tx.put(bucketRuns, []byte(run), s.encode()), tx.put(bucketMeta, []byte(metaHead), encodeLink(tx.head)))
	})
	require.NoError(t, err)
}

func TestTheFilesOfALedger(t *testing.T) {
	for path, want := range map[string][]string{
		"/x/ledger.db": {"/x/ledger.db", "/x/ledger.lock", "/x/ledger.head"},
		"/x/a.LOCK":    {"/x/a.LOCK", "/x/a.LOCK.lock", "/x/a.head"},
		"/x/a":         {"/x/a", "/x/a.lock", "/x/a.head"},
	} {
		require.Equal(t, want, Files(path))
	}
}
